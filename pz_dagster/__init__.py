"""pz_dagster: a pz project as Dagster assets and asset checks."""
