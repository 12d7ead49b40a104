"""Takes the partitions that an earlier run landed before its load failed.

Only into an empty ledger: what an earlier attempt of this run landed is its own. Everything is checked first, and whatever
does not hold is read again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.quoting import STAGING_SCHEMA, staging_relation
from pz_engine.duck.session import DuckCursor
from pz_engine.execute.context import Attempt
from pz_engine.execute.ledgers.partition_ledger import META_SCHEMA, Checkpoint, Origin, PartitionLedger
from pz_engine.execute.prior_database import ALIAS, PriorDatabase

_HASH_LENGTH: Final = 16


class PartNames(Struct, frozen=True):
    """Names of a node's tables in progress; identities appear in them as hashes only."""

    node_id: str

    def part(self, identity: str) -> str:
        """Return the table of a partition in progress."""
        return f"__pz_part__{self._key}__{_hash(identity)}"

    def segment(self, identity: str) -> str:
        """Return the table of a partition's rows since its last checkpoint."""
        return f"__pz_seg__{self._key}__{_hash(identity)}"

    def owns(self, name: str) -> bool:
        """Tell whether a table is one of the node's."""
        return name.startswith((f"__pz_part__{self._key}__", f"__pz_seg__{self._key}__"))

    @property
    def _key(self) -> str:
        return "".join(character for character in self.node_id if character.isalnum())


def copy_prior_partitions(
    attempt: Attempt,
    node: SourceLoadNode,
    ledger: PartitionLedger,
    planned: Sequence[str],
    window: tuple[str, str] | None,
) -> None:
    """Copy what the continued run has landed of a load, and its checkpoints.

    Args:
        attempt: the attempt; its main table exists and is empty.
        node: the load.
        ledger: this run's, empty.
        planned: identities of the partitions as planned now.
        window: the slice of this read.
    """
    context = attempt.context
    prior = context.prior
    if context.resume is None or node.id not in context.resume.partial or prior is None:
        return
    if not prior.is_usable(attempt.cursor) or not prior.has_table(attempt.cursor, META_SCHEMA, "partitions_done"):
        return
    what = f"partitions of {node.key} are read again"
    with prior.falling_back(what):
        recorded = PartitionLedger(attempt.cursor, node.id, ALIAS)
        done, checkpoints = recorded.done(), recorded.checkpoints()
        if not done and not checkpoints:
            return
        problem = _problem(attempt.cursor, prior, node, recorded, planned, window)
        if problem is not None:
            prior.say_unusable(what, problem)
            return
        with attempt.cursor.transaction():
            _copy(attempt.cursor, prior, node, ledger, recorded, done, checkpoints)


def _problem(
    cursor: DuckCursor,
    prior: PriorDatabase,
    node: SourceLoadNode,
    recorded: PartitionLedger,
    planned: Sequence[str],
    window: tuple[str, str] | None,
) -> str | None:
    done = recorded.done()
    if recorded.window() != window:
        return "they belong to another slice"
    if not set(done) <= set(planned):
        return "the source is divided in another way now"
    if not prior.has_table(cursor, STAGING_SCHEMA, node.name):
        return "its rows are not there any more"
    main = prior.relation(STAGING_SCHEMA, node.name)
    if cursor.count(main) != sum(done.values()):
        return "the rows are not those that were counted"
    here = cursor.describe(f"select * from {staging_relation(node.name)}")
    if cursor.describe(f"select * from {main}") != here:
        return "the columns have changed"
    return None


def _copy(
    cursor: DuckCursor,
    prior: PriorDatabase,
    node: SourceLoadNode,
    ledger: PartitionLedger,
    recorded: PartitionLedger,
    done: Mapping[str, int],
    checkpoints: Mapping[str, Checkpoint],
) -> None:
    cursor.execute(
        f"insert into {staging_relation(node.name)} select * from {prior.relation(STAGING_SCHEMA, node.name)}"
    )
    for identity, rows in done.items():
        ledger.mark_done(identity, rows, Origin.REUSED)
    earlier = recorded.reach()
    if earlier is not None:
        ledger.record_reach(earlier)
    names = PartNames(node.id)
    for identity, checkpoint in checkpoints.items():
        part = names.part(identity)
        source = prior.relation(STAGING_SCHEMA, part)
        if not prior.has_table(cursor, STAGING_SCHEMA, part) or cursor.count(source) != checkpoint.rows:
            continue
        cursor.execute(f"create or replace table {staging_relation(part)} as select * from {source}")
        ledger.set_checkpoint(identity, checkpoint)


def _hash(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
