"""Random changes of valid project documents: keys come, go and change their names and values."""

from __future__ import annotations

import copy

from hypothesis import strategies as st
from schema_documents import as_yaml

from pz_engine.config.connection_keys import (
    CONNECTION_BLOCK,
    ENTITY_BLOCK,
    RATE_LIMIT_BLOCK,
    READ_BLOCK,
    RETRY_BLOCK,
    SYNC_BLOCKS,
    WRITE_BLOCK,
)
from pz_engine.config.project_keys import BREAKER_BLOCK, DUCKDB_BLOCK, ENGINE_BLOCK, PROJECT, STATE_BLOCKS
from pz_engine.config.sidecar_keys import CHECKS, SIDECAR

BLOCKS = (
    CONNECTION_BLOCK, ENTITY_BLOCK, RATE_LIMIT_BLOCK, READ_BLOCK, RETRY_BLOCK, *SYNC_BLOCKS.values(), WRITE_BLOCK,
    BREAKER_BLOCK, DUCKDB_BLOCK, ENGINE_BLOCK, PROJECT, *STATE_BLOCKS.values(), SIDECAR,
    *(check.block for check in CHECKS.values()),
)  # fmt: skip
NAMES = sorted(
    {name for block in BLOCKS for name in (*block.names, *(r.name for r in block.retired))}
    | {*CHECKS, "engin", "keep", "a..b", "a b", "a__b", "<<", "", "bogus"}
)
VALUES = st.sampled_from(
    [None, "", " ", "x", "a b", "on", "off", "No", "true", True, False, 0, 1, -1, 4, 100, 101, 1_048_576, 2_147_483_647,
     2_147_483_648, 1.5, 1e300, "0s", "30s", "1h", "5", "99999999999d", [], ["id"], ["id", "ID"], [1], [None], [[]], {}, {"a": 1},
     {"a": "bigint"}, {"a": None}, "merge", "append", "soft", "accept", "evolve", "view", "incremental", "cdc", "auto",
     "local", "http", "postgres", "https://h", "${NAME}", "${UNSET}", "decimal(10,2)", "decimal(2,5)", "decimal(99,1)",
     "bigint", "warn", "1.10", "select 1", ";", {"keep_last": 3}, {"column": "id"}, {"columns": ["id"]}, [{"unique": ["id"]}]]
)  # fmt: skip


def containers_of(node):
    if isinstance(node, (dict, list)):
        yield node
        for child in node.values() if isinstance(node, dict) else node:
            yield from containers_of(child)


@st.composite
def mutated(draw, seeds):
    """A valid document after up to three random changes, as YAML."""
    document = copy.deepcopy(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        places = list(containers_of(document))
        place = draw(st.sampled_from(places))
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if isinstance(place, dict):
            change = draw(st.sampled_from(["add", "rename", "delete", "replace", "replace"]))
        else:
            change = draw(st.sampled_from(["append", "replace", "replace"]))
        if change == "add":
            place[draw(st.sampled_from(NAMES))] = copy.deepcopy(draw(VALUES))
        elif change == "append":
            place.append(copy.deepcopy(draw(VALUES)))
        elif keys:
            key = draw(st.sampled_from(keys))
            if change == "replace":
                place[key] = copy.deepcopy(draw(VALUES))
            elif change == "rename":
                place[draw(st.sampled_from(NAMES))] = place.pop(key)
            else:
                del place[key]
    return as_yaml(document)
