"""`engine:` and `retention:`; every malformed value is reported together."""

from __future__ import annotations

from pz_engine.config import project_keys as keys
from pz_engine.config.block_reader import BlockReader
from pz_engine.config.kinds import Malformed
from pz_engine.config.located import Located, Table
from pz_engine.config.reporter import Reporter
from pz_engine.model.project import BreakerSettings, DuckDbSettings, EngineSettings


def parse_engine(table: Table | None, report: Reporter) -> EngineSettings:
    """Read `engine:`; every problem is `PZ0120`."""
    if table is None:
        return EngineSettings()
    reader = BlockReader(keys.ENGINE_BLOCK, table, report)
    reader.refuse_other_keys()
    return EngineSettings(
        threads=reader.read(keys.THREADS),
        batch_bytes=reader.read(keys.BATCH_BYTES),
        force_universal=reader.read(keys.FORCE_UNIVERSAL),
        fusion=reader.read(keys.FUSION),
        check_samples=reader.read(keys.CHECK_SAMPLES),
        node_timeout=reader.read(keys.NODE_TIMEOUT),
        duckdb=_parse_duckdb(reader.read(keys.DUCKDB), report),
        breaker=_parse_breaker(reader.read(keys.BREAKER), report),
    )


def parse_retention(reader: BlockReader) -> int | None:
    """Read `retention:`: how many runs keep their staging, None for off; every problem is `PZ0123`."""
    node = reader.present(keys.RETENTION)
    if node is None:
        return keys.KEEP_LAST.default
    if isinstance(node, Table):
        block = BlockReader(keys.RETENTION_BLOCK, node, reader.report)
        has_other_keys = block.refuse_other_keys()
        is_misspelled = has_other_keys and keys.KEEP_LAST.name not in node.entries
        return keys.KEEP_LAST.default if is_misspelled else block.read(keys.KEEP_LAST)
    return None if _is_off(node, reader) else keys.KEEP_LAST.default


def _is_off(node: Located, reader: BlockReader) -> bool:
    try:
        keys.OFF.parse(node)
    except Malformed as problem:
        reader.refuse(keys.RETENTION, node, problem)
        return False
    return True


def _parse_duckdb(table: Table | None, report: Reporter) -> DuckDbSettings:
    if table is None:
        return DuckDbSettings()
    reader = BlockReader(keys.DUCKDB_BLOCK, table, report)
    reader.refuse_other_keys()
    return DuckDbSettings(
        memory_limit=reader.read(keys.MEMORY_LIMIT),
        threads=reader.read(keys.DUCKDB_THREADS),
        temp_directory=reader.read(keys.TEMP_DIRECTORY),
        allow_extension_download=reader.read(keys.ALLOW_EXTENSION_DOWNLOAD),
    )


def _parse_breaker(table: Table | None, report: Reporter) -> BreakerSettings | None:
    if table is None:
        return None
    reader = BlockReader(keys.BREAKER_BLOCK, table, report)
    reader.refuse_other_keys()
    threshold, cool_down = reader.read(keys.FAILURE_THRESHOLD), reader.read(keys.COOL_DOWN)
    return BreakerSettings(threshold, cool_down) if threshold is not None and cool_down is not None else None
