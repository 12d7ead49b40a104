"""Connectors that ship with pz; none imports another."""
