"""State behind an HTTP endpoint that was issued for a run."""
