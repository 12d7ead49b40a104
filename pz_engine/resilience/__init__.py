"""Retries and delays."""
