"""Project files to a compiled graph; no data, no network."""
