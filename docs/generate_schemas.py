"""Writes the JSON Schemas of project files from the definitions the loader reads.

Run `python docs/generate_schemas.py` after changing a key; a test fails while a schema is out of date.
"""

from __future__ import annotations

from pz_engine.config.json_schema import SCHEMA_NAMES, render_schema, schema_file

if __name__ == "__main__":
    for name in SCHEMA_NAMES:
        schema_file(name).parent.mkdir(parents=True, exist_ok=True)
        schema_file(name).write_bytes(render_schema(name))
