"""Pipeline templates on Jinja2."""
