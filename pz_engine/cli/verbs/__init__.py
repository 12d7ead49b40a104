"""One module per verb, loaded by name."""
