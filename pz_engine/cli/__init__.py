"""The pz command."""
