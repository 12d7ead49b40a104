"""Everything that talks to DuckDB; the only package that imports it."""
