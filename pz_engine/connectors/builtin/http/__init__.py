"""JSON pages of HTTP services."""
