"""Loader and JSON Schema, side by side on thousands of mutated documents.

Whatever the loader accepts is valid; whatever it refuses is invalid, but for the rules that `BEYOND_A_SCHEMA` names.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from fuzz_size import cases
from hypothesis import given
from schema_documents import as_editor, problems_of, validator
from schema_mutations import mutated

BEYOND_A_SCHEMA = (
    ("a variable that is not set", "PZ0103", ""),
    ("a package listed twice", "PZ0110.*is listed twice", ""),
    ("the environment's part of state", "PZ0125.*(has no|not an absolute|uses connector|names|is no name)", ""),
    (
        "keys of state while the environment names the backend",
        "PZ0124.*state has an unknown key",
        "(?s)^(?!.*backend:)",
    ),
    ("keys of state that exclude each other", "PZ0124.*(needs state.artifacts|is not available with backend)", ""),
    ("delays in the wrong order", "PZ0121.*shorter than", ""),
    ("on_delete without merge", "PZ0334.*needs strategy: merge", ""),
    ("a scale above the precision", "PZ0101.*has no type that a contract accepts.*decimal", "decimal\\(2,5"),
    ("a whole number with an exponent", "PZ0113.*with a point or an exponent", "1.0e\\+300"),
    ("a duration nobody lives to see", "must be a duration above zero", "[0-9]{10,}(ms|s|m|h|d)"),
    ("a check or a name of a check written twice", "PZ0113.*(is written twice|is used twice)", ""),
    ("a column listed twice", "PZ0113.*listed twice", ""),
    ("limits in the wrong order", "PZ0113.*min is above max", ""),
)
"""Rules over several keys, several files or the environment: the text of their problem, and of the file."""

SEEDS = {
    "project": [
        {"name": "a", "version": "1"},
        {
            "name": "a", "version": 1.5, "pz": ">=1", "connectors": [{"package": "p", "version": "1.0"}],
            "vars": {"a": [1, {"b": "${NAME}"}]}, "on_source_drift": "warn", "retention": {"keep_last": 5},
            "engine": {
                "threads": 2, "batch_bytes": 1_048_576, "force_universal": True, "fusion": "off", "check_samples": False,
                "node_timeout": "1h", "breaker": {"failure_threshold": 5, "cool_down": "30s"},
                "duckdb": {"memory_limit": "1GB", "threads": 2, "temp_directory": "t", "allow_extension_download": True},
            },
            "state": {"backend": "http", "url": "https://h", "timeout_seconds": 5, "artifacts": False, "events": False},
        },
        {
            "name": "a", "version": "1", "retention": "off",
            "state": {"backend": "postgres", "connection": "db", "schema": "s", "artifacts": True, "events": True},
        },
    ],
    "connections": [
        {"c": {"connector": "localfiles"}},
        {
            "c": {
                "connector": "postgres", "host": "${NAME}", "max_concurrency": 2, "allow_unsigned_extensions": True,
                "rate_limit": {"requests_per_minute": 60, "burst": 5},
                "retry": {"max_attempts": 3, "base_delay": "1s", "max_delay": "30s"},
                "entities": {
                    "dbo.orders": {
                        "read": {
                            "columns": {"id": "bigint", "d": "decimal(10,2)"}, "partitions": 2, "path": "x",
                            "sync": {"mode": "incremental", "cursor": "u", "max_window": "1d", "initial": "2026-01-01",
                                     "until": "now"},
                            "retry": {"max_attempts": 1},
                        },
                        "write": {
                            "strategy": "merge", "keys": ["id"], "duplicates": "accept", "on_delete": "soft",
                            "schema_policy": "evolve", "retry": {"base_delay": "5ms"}, "format": "csv",
                        },
                    },
                    "e": {"read": {"sync": {"mode": "cdc", "slot": "s"}}},
                    "f": {"read": {"sync": {"mode": "auto"}}, "write": None},
                },
            },
            "d": {"connector": "x"},
        },
    ],
    "sidecar": [
        {"pipeline": "one"},
        {
            "pipeline": "one", "materialization": "view", "tags": ["a", 1],
            "checks": [
                {"not_null": ["id"]}, {"unique": {"columns": ["id", "b"], "sample_values": False}},
                {"row_count": {"min": 1, "max": 5}}, {"freshness": {"column": "u", "max_age": "1d"}},
                {"accepted_values": {"columns": ["s"], "values": ["a", 1, 1.5, True]}},
                {"custom_sql": {"name": "n", "sql": "select 1"}},
            ],
        },
    ],
}  # fmt: skip


def is_beyond_a_schema(problem, text):
    said = f"{problem.code} {problem.message} {problem.hint}"
    return any(re.search(pattern, said) and re.search(written, text) for _, pattern, written in BEYOND_A_SCHEMA)


@pytest.mark.parametrize("kind", sorted(SEEDS))
def test_loader_and_schema_agree(kind):
    """No false alarm in an editor, and no mistake of shape that it would miss."""
    seen = {"accepted": 0, "refused": 0, "beyond": 0}

    with tempfile.TemporaryDirectory() as directory:

        @cases(400)
        @given(mutated(SEEDS[kind]))
        def compare(text):
            problems = problems_of(kind, text, Path(directory))
            is_valid = validator(kind).is_valid(as_editor(text))
            if not problems:
                seen["accepted"] += 1
                assert is_valid, [error.message for error in validator(kind).iter_errors(as_editor(text))]
            elif all(is_beyond_a_schema(problem, text) for problem in problems):
                seen["beyond"] += 1
            else:
                seen["refused"] += 1
                assert not is_valid, problems

        compare()
    assert min(seen["accepted"], seen["refused"]) > 5
