"""Project files on disk to the frozen model (validation tier 1)."""
