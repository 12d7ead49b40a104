"""Frozen values of a pz project; no I/O."""
