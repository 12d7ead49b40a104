"""The template language of pipelines: Jinja's sandbox with pz's spelling."""
