"""Runs a planned project."""
