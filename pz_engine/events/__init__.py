"""Run events: the contract between a run and everything that watches it."""
