"""Parts shared by connectors."""
