"""The text of `COPY … TO` for every format."""

from __future__ import annotations

from pathlib import Path

from pz_engine.connectors.fragments import SOURCE_PLACEHOLDER
from pz_engine.connectors.toolkit.file_options import FileWriteOptions
from pz_engine.duck.quoting import quote_literal


def copy_statement(options: FileWriteOptions, target: Path) -> str:
    """Return the statement that writes the placeholder relation to one file."""
    settings = _settings(options)
    return f"copy (select * from {SOURCE_PLACEHOLDER}) to {quote_literal(str(target))} ({', '.join(settings)})"


def _settings(options: FileWriteOptions) -> list[str]:
    if options.format == "parquet":
        compression = "uncompressed" if options.compression == "none" else options.compression
        return ["format parquet", f"compression {compression}"]
    packed = f"compression {options.compression}"
    if options.format == "json":
        return ["format json", f"array {'true' if options.layout == 'array' else 'false'}", packed]
    return ["format csv", "header true", f"delimiter {quote_literal(options.delimiter)}", packed]
