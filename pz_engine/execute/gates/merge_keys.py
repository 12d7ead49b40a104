"""Guards of a merge, before the destination is touched."""

from __future__ import annotations

from pz_engine.compile.dag import SinkWriteNode
from pz_engine.duck.quoting import quote_identifier
from pz_engine.events.types import MergeKeyDuplicatesDetected
from pz_engine.execute.context import Attempt
from pz_engine.execute.outcome import NodeFailure
from pz_engine.model.policies import Strategy


def guard_merge_keys(attempt: Attempt, node: SinkWriteNode, relation: str) -> bool:
    """Refuse NULL merge keys and record duplicate ones.

    Returns:
        Whether every key is known to occur once; False for other strategies, whose rows nobody looked at.

    Raises:
        NodeFailure: `PZ0521` with the key columns and the number of rows, or a key that is not a column.
    """
    if node.strategy is not Strategy.MERGE:
        return False
    cursor = attempt.cursor
    landed = {column.name.lower() for column in cursor.describe(f"select * from {relation}")}
    missing = [key for key in node.keys if key.lower() not in landed]
    if missing:
        raise NodeFailure(
            "PZ0501",
            f"output '{node.name}': merge key {', '.join(missing)} is not a column of pipeline '{node.pipeline}'",
        )
    keys = ", ".join(quote_identifier(key) for key in node.keys)
    nulls = " or ".join(f"{quote_identifier(key)} is null" for key in node.keys)
    count = int(cursor.scalar(f"select count(*) from {relation} where {nulls}"))
    if count:
        raise NodeFailure(
            "PZ0521",
            f"output '{node.name}': {count} row(s) have NULL in merge key {', '.join(node.keys)}; filter them or fix the keys",
        )
    groups, extra = cursor.rows(
        f"select count(*), coalesce(sum(n - 1), 0) from (select count(*) as n from {relation} group by {keys} having count(*) > 1)"
    )[0]
    attempt.warnings.examine(node.id, MergeKeyDuplicatesDetected)
    if groups:
        attempt.warnings.add(
            MergeKeyDuplicatesDetected,
            node_id=node.id,
            output=node.entity,
            keys=node.keys,
            duplicate_groups=int(groups),
            extra_rows=int(extra),
        )
    return not groups
