"""The slices that a run's request gives for some entities, in place of what state and declaration say.

Such a read begins and ends where the request says, whatever is stored. Rows without a cursor value belong to no slice:
they are fetched with it, counted, and deleted before anything sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from pz_engine.compile.dag import SourceLoadNode
from pz_engine.duck.quoting import quote_identifier
from pz_engine.duck.session import DuckCursor
from pz_engine.model.cursor_values import compare, duck_literal
from pz_engine.model.run import WatermarkCandidate
from pz_engine.state.store import WatermarkEntry


class RunWindow(Struct, frozen=True):
    """One entity's slice, canonical texts of its cursor's type."""

    lower: str
    """Exclusive."""

    upper: str
    """Inclusive."""

    cuts: tuple[str, ...] = ()
    """Ascending inclusive ends of the parts to count rows for; the last one is `upper`."""


class RunWindows(Struct, frozen=True):
    """Every slice of a run, by entity key."""

    by_key: Mapping[str, RunWindow] = field(default_factory=dict)
    bypasses_state: bool = False
    """Stored positions of these entities are neither read nor advanced."""

    def bypasses(self, key: str) -> bool:
        """Tell whether the run has nothing to do with an entity's state."""
        return self.bypasses_state and key in self.by_key

    def candidate(
        self, key: str, found: WatermarkCandidate | None, stored: WatermarkEntry | None, note: Callable[[str], None]
    ) -> WatermarkCandidate | None:
        """Return what a read may leave behind: a slice that does not join the stored position leaves nothing.

        Storing the end of such a slice would skip whatever lies between the two for good.
        """
        window = self.by_key.get(key)
        if window is None or found is None:
            return found
        if self.bypasses_state:
            return None
        if stored is not None and stored.type == found.type and compare(found.type, window.lower, stored.value) <= 0:
            return found
        note(f"the watermark of {key} stays: the slice of this run does not begin at or below it")
        return None


def drop_null_cursors(cursor: DuckCursor, node: SourceLoadNode, relation: str, note: Callable[[str], None]) -> int:
    """Delete the landed rows without a cursor value and say how many there were; returns that number."""
    if node.incremental is None:
        return 0
    column = node.incremental.cursor
    dropped = cursor.changed_rows(f"delete from {relation} where {quote_identifier(column)} is null")
    if dropped:
        note(
            f"{node.key}: {dropped} row(s) without a value in cursor column '{column}' belong to no window and were not read"
        )
    return dropped


def given_part_rows(
    windows: RunWindows, cursor: DuckCursor, node: SourceLoadNode, relation: str
) -> tuple[int, ...] | None:
    """Count the landed rows of each part of a slice, in the order of its ends; None when the request names no parts."""
    window, declared = windows.by_key.get(node.key), node.incremental
    if window is None or not window.cuts or declared is None or declared.cursor_type is None:
        return None
    kind = declared.cursor_type
    ends = ", ".join(f"({number}, {duck_literal(kind, cut)})" for number, cut in enumerate(window.cuts))
    counted = cursor.rows(
        f"select part, count(*) from {relation} as landed asof join (values {ends}) as given(part, ends_at) "
        f"on landed.{quote_identifier(declared.cursor)} <= given.ends_at group by part"
    )
    found = {int(part): int(rows) for part, rows in counted}
    return tuple(found.get(number, 0) for number in range(len(window.cuts)))
