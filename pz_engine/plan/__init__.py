"""Which data path each node takes, and why."""
