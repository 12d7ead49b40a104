"""What a run's own database remembers about work that is half done; changed in the same transaction as the data."""
