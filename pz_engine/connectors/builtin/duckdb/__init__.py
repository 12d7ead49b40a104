"""Tables in DuckDB database files."""
