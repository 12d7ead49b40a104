"""Gates that look at staged data."""
