"""Validation tiers 3 to 5 and their driver."""
