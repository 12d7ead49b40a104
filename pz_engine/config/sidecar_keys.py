"""Every key of a sidecar, and every option of a check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from pz_engine.config.definitions import Block, Key, ListOf
from pz_engine.config.kinds import Choice, Duration, Flag, Malformed, Text, TextList, Values, Whole
from pz_engine.config.located import Listing, Located, Table, kind_of
from pz_engine.model.checks import CheckType
from pz_engine.model.policies import Materialization

CUSTOM_NAME = r"[a-z][a-z0-9_]*"
"""A whole name of a custom_sql check."""

_WHOLE_64 = Whole(-(2**63), 2**63 - 1)

COLUMN = Key(
    "column", Text(wanted="the name of a column"), "The one column it looks at.", "", may_be_blank=False, example="id"
)
COLUMN_LIST: Key[tuple[str, ...]] = Key(
    "columns",
    TextList(wanted="a list of column names"),
    "The columns it looks at.",
    (),
    may_be_blank=False,
    example="[id]",
)
SAMPLE_VALUES: Key[bool | None] = Key(
    "sample_values", Flag(), "Show sample rows when it fails; else engine.check_samples.", None,
    may_be_blank=False, example="false",
)  # fmt: skip
MIN: Key[int | None] = Key("min", _WHOLE_64, "Fewest rows; min, max or both.", None, may_be_blank=False, example="1")
MAX: Key[int | None] = Key("max", _WHOLE_64, "Most rows.", None, may_be_blank=False, example="1000000")
MAX_AGE = Key(
    "max_age",
    Duration(),
    "Oldest allowed age of the newest value.",
    None,
    is_required=True,
    may_be_blank=False,
    example="24h",
)
VALUES = Key(
    "values",
    Values(),
    "Values that are accepted; NULL always is.",
    None,
    is_required=True,
    may_be_blank=False,
    example="[a, b]",
)
CUSTOM_SQL_NAME = Key(
    "name", Text(pattern=CUSTOM_NAME, wanted="lowercase letters, digits and _"), "Name of the check.", "",
    is_required=True, may_be_blank=False, example="no_orphans",
)  # fmt: skip
SQL = Key(
    "sql", Text(pattern=r"[\s\S]*[^\s;][\s\S]*", wanted="a query"), "Query that returns the bad rows.", "", is_required=True,
    may_be_blank=False, example="select ... returning the bad rows",
)  # fmt: skip


class CheckDefinition(Struct, frozen=True):
    """One type of check."""

    type: CheckType
    columns: Literal["some", "one", "none"]
    summary: str
    options: tuple[Key[object], ...] = ()
    any_of: tuple[Key[object], ...] = ()
    """Options of which at least one is needed."""

    @property
    def block(self) -> Block:
        """Every option, those of all checks included."""
        return Block("", "PZ0113", (*self.options, COLUMN, COLUMN_LIST, SAMPLE_VALUES), self.summary)

    @property
    def may_be_list(self) -> bool:
        """Tell whether a bare list of columns says everything."""
        return self.columns == "some" and not any(key.is_required for key in self.options)


CHECKS: Mapping[str, CheckDefinition] = {
    definition.type.value: definition
    for definition in (
        CheckDefinition(CheckType.NOT_NULL, "some", "No row has NULL in one of the columns."),
        CheckDefinition(CheckType.UNIQUE, "some", "No two rows have the same values in the columns."),
        CheckDefinition(CheckType.ROW_COUNT, "none", "The number of rows is within limits.", (MIN, MAX), (MIN, MAX)),
        CheckDefinition(CheckType.FRESHNESS, "one", "The newest value of the column is recent.", (MAX_AGE,)),
        CheckDefinition(CheckType.ACCEPTED_VALUES, "one", "The column holds listed values only.", (VALUES,)),
        CheckDefinition(CheckType.CUSTOM_SQL, "none", "A query returns no rows.", (CUSTOM_SQL_NAME, SQL)),
    )
}
"""Every type by its name, in the order a message lists them."""


class CheckItem(Struct, frozen=True):
    """One check: a type with its options."""

    wanted: str = "one type with its options"
    example: str = "not_null: [id]"

    def parse(self, node: Located) -> Table:
        """Return the mapping of the one type."""
        if not isinstance(node, Table) or len(node.entries) != 1:
            raise Malformed(kind_of(node))
        return node


PIPELINE = Key(
    "pipeline", Text(), "Pipeline that the file configures.", "", code="PZ0111", is_required=True, may_be_blank=False
)
MATERIALIZATION = Key(
    "materialization", Choice(Materialization), "What the pipeline becomes in staging.", Materialization.TABLE,
    code="PZ0134", may_be_blank=False,
)  # fmt: skip
TAGS: Key[tuple[str, ...]] = Key(
    "tags", TextList(takes_scalars=True), "Labels for --select tag:<name>.", (), example="[daily]"
)
CHECK_LIST: Key[Listing | None] = Key(
    "checks", ListOf(CheckItem()), "Checks of the pipeline's rows.", None, code="PZ0113", example="[{not_null: [id]}]"
)
SIDECAR = Block("", "PZ0101", (PIPELINE, MATERIALIZATION, TAGS, CHECK_LIST), "Configuration of one pipeline.")
