"""SQL of the six check types."""
