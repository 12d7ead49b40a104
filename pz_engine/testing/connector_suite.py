"""The conformance suite every connector passes, built-in or not.

Subclass `ConnectorSuite` in a test module, give the class a name that starts with `Test`, and override the `harness`
fixture:

    from pz_engine.testing.connector_suite import ConnectorHarness, ConnectorSuite

    class TestAcme(ConnectorSuite):
        @pytest.fixture
        def harness(self, tmp_path):
            return ConnectorHarness(AcmeConnector(), {"root": "out", "base_dir": str(tmp_path)})

`ConnectorHarness.read_options` must name what reads back a write of the same entity. Tests of abilities that the
connector does not declare are skipped; everything it declares is tested. Connectors that only read, or whose far side
needs its own data, add tests of their own beside the suite.
"""

from __future__ import annotations

import jsonschema
import pytest

from pz_engine.base.cancellation import CancelToken
from pz_engine.connectors.api import ConnectionUse, SinkConnector, WriteProbe
from pz_engine.connectors.capabilities import Capability
from pz_engine.duck.session import DuckCursor
from pz_engine.errors.exceptions import PzConnectorError
from pz_engine.model.policies import Strategy
from pz_engine.testing.connector_suite_batches import BatchSuite
from pz_engine.testing.connector_suite_driver import LANDED, ConnectorHarness, land_natively, landed_rows
from pz_engine.testing.connector_suite_parts import CONTRACT, EVERY_TYPE_CAST, PAIRS, listing, pairs

__all__ = ["ConnectorHarness", "ConnectorSuite"]

RESERVED_KEYS = frozenset(
    {
        "connector",
        "entities",
        "max_concurrency",
        "rate_limit",
        "retry",
        "allow_unsigned_extensions",
        "base_dir",
        "state_dir",
    }
)
"""Connection keys that belong to the engine."""


class ConnectorSuite(BatchSuite):
    """The tests; see the module's docstring."""

    # --- what a connector says about itself ---

    def test_option_schemas_are_closed(self, harness: ConnectorHarness) -> None:
        """An option nobody knows is refused on all three surfaces."""
        connector = harness.connector
        for schema in (connector.connection_schema, connector.read_schema, connector.write_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            errors = list(jsonschema.Draft202012Validator(schema).iter_errors({"no_such_option": 1}))
            assert any(error.validator == "additionalProperties" for error in errors)

    def test_connection_schema_leaves_engine_keys_alone(self, harness: ConnectorHarness) -> None:
        """Keys of the engine never appear in a connector's own schema."""
        assert not RESERVED_KEYS & set(harness.connector.connection_schema.get("properties", {}))

    def test_validate_accepts_the_options_of_this_suite(self, harness: ConnectorHarness) -> None:
        """What the suite uses has no findings, so a finding elsewhere means something."""
        use = ConnectionUse(
            harness.connection,
            harness.config,
            reads={"orders": {**harness.read_options("orders"), "columns": PAIRS}} if harness.can_read else {},
            writes={"orders": harness.write_options} if harness.can_write else {},
        )
        assert harness.connector.validate(use) == []

    def test_probe_answers_without_raising(self, harness: ConnectorHarness) -> None:
        """A failed probe says whether trying again makes sense."""
        result = harness.connector.check_connection(harness.config, CancelToken())
        assert result.ok or result.message.startswith(("transient:", "permanent:"))

    def test_planning_leaves_nothing_on_disk(self, harness: ConnectorHarness) -> None:
        """Asking for a native copy creates neither files nor folders."""
        if harness.directory is None or not isinstance(harness.connector, SinkConnector):
            pytest.skip("nothing local to look at")
        before = listing(harness.directory)
        sink = harness.connector.open_sink(harness.config)
        sink.native_copy(harness.write_spec("orders", Strategy.APPEND))
        sink.close()
        sink.close()
        assert listing(harness.directory) == before

    def test_write_probe_leaves_nothing_on_disk(self, harness: ConnectorHarness) -> None:
        """Asking whether a write is allowed says yes to the suite's own target and changes nothing."""
        if not isinstance(harness.connector, SinkConnector):
            pytest.skip("the connector does not write")
        sink = harness.connector.open_sink(harness.config)
        if not isinstance(sink, WriteProbe):
            pytest.skip("the sink offers no probe")
        before = listing(harness.directory)
        assert sink.check_write(harness.write_spec("orders", Strategy.APPEND), CancelToken()).ok
        sink.close()
        assert listing(harness.directory) == before

    # --- rows on the native tier ---

    def test_every_type_comes_back_unchanged(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Edge values, unicode, line breaks and nulls of all types survive a write and a read."""
        self._write(cursor, harness, "types", EVERY_TYPE_CAST)
        self._land(cursor, harness, "types", CONTRACT)
        assert landed_rows(cursor) == cursor.rows(f"select * from ({EVERY_TYPE_CAST}) order by all")

    def test_types_come_back_without_a_contract(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A destination that stores types gives them back by itself."""
        if harness.needs_contract:
            pytest.skip("the format keeps no types")
        self._write(cursor, harness, "types", EVERY_TYPE_CAST)
        self._land(cursor, harness, "types", None)
        assert landed_rows(cursor) == cursor.rows(f"select * from ({EVERY_TYPE_CAST}) order by all")

    def test_long_decimals_keep_their_digits(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """38 digits go out and come back."""
        if not harness.keeps_long_decimals:
            pytest.skip("the format's numbers are doubles")
        query = "select 12345678901234567890123456789.012345678::decimal(38,9) as d"
        self._write(cursor, harness, "digits", query)
        self._land(cursor, harness, "digits", {"d": "decimal(38,9)"})
        assert landed_rows(cursor) == cursor.rows(query)

    def test_empty_text_is_not_null_where_promised(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """An empty string stays one, unless the format cannot tell."""
        self._write(cursor, harness, "texts", "select 1 as k, '' as v")
        self._land(cursor, harness, "texts", PAIRS)
        assert landed_rows(cursor) == [(1, "" if harness.keeps_empty_text else None)]

    def test_zero_rows_keep_their_columns(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """An empty result is written and read back as an empty entity with its columns."""
        assert self._write(cursor, harness, "nothing", pairs()) == 0
        self._land(cursor, harness, "nothing", PAIRS)
        assert landed_rows(cursor) == []
        assert [column.name for column in cursor.describe(f"select * from {LANDED}")] == ["k", "v"]

    def test_columns_bind_by_name(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A contract in another order, or with fewer columns, gets the right values."""
        self._write(cursor, harness, "named", "select 7 as k, 'seven' as v, 1.5::double as w")
        self._land(cursor, harness, "named", {"w": "double", "k": "int"})
        assert landed_rows(cursor) == [(1.5, 7)]

    def test_missing_contract_column_is_refused(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A column that is not there is an error that names it, never a column of nulls."""
        self._write(cursor, harness, "named", pairs((1, "a")))
        if harness.connector.read_schema.get("properties", {}).get("format") and self._is_json(harness):
            pytest.skip("json objects may lack any key")
        with pytest.raises(PzConnectorError, match="absent_column") as caught:
            self._land(cursor, harness, "named", {"k": "int", "absent_column": "int"})
        assert caught.value.code == "PZ0353"
        assert not caught.value.is_transient

    def test_replace_replaces(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Twice in a row leaves the second's rows; zero rows empty the target."""
        self._require(harness, Capability.REPLACE_WRITES)
        for rows in (((1, "a"), (2, "b")), ((3, "c"),), ()):
            assert self._write(cursor, harness, "orders", pairs(*rows)) == len(rows)
            self._land(cursor, harness, "orders", PAIRS)
            assert landed_rows(cursor) == list(rows)

    def test_append_adds(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Rows of earlier writes stay."""
        self._write(cursor, harness, "log", pairs((1, "a")), Strategy.APPEND)
        self._write(cursor, harness, "log", pairs((2, "b")), Strategy.APPEND)
        self._write(cursor, harness, "log", pairs(), Strategy.APPEND)
        self._land(cursor, harness, "log", PAIRS)
        assert landed_rows(cursor) == [(1, "a"), (2, "b")]

    def test_merge_keeps_one_row_per_key(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """Matches are updated, others inserted, and of several staged rows of a key the last wins, first load or not."""
        self._require(harness, Capability.MERGE)
        self._write(cursor, harness, "accounts", pairs((1, "old"), (1, "new"), (2, "b")), Strategy.MERGE, ("k",))
        self._land(cursor, harness, "accounts", PAIRS)
        assert landed_rows(cursor) == [(1, "new"), (2, "b")]
        self._write(cursor, harness, "accounts", pairs((2, "x"), (3, "p"), (3, "q"), (2, "y")), Strategy.MERGE, ("k",))
        self._write(cursor, harness, "accounts", pairs(), Strategy.MERGE, ("k",))
        self._land(cursor, harness, "accounts", PAIRS)
        assert landed_rows(cursor) == [(1, "new"), (2, "y"), (3, "q")]

    def test_merge_into_a_table_of_keys_only(self, harness: ConnectorHarness, cursor: DuckCursor) -> None:
        """A table without other columns gains the new keys and nothing else."""
        self._require(harness, Capability.MERGE)
        for rows in (((1, "a"), (1, "a")), ((1, "a"), (2, "b"))):
            self._write(cursor, harness, "keys_only", pairs(*rows), Strategy.MERGE, ("k", "v"))
        self._land(cursor, harness, "keys_only", PAIRS)
        assert landed_rows(cursor) == [(1, "a"), (2, "b")]

    @pytest.mark.parametrize("cursor_type", ["int", "timestamp"])
    def test_bounds_cut_exactly(self, harness: ConnectorHarness, cursor: DuckCursor, cursor_type: str) -> None:
        """Lower bounds are exclusive unless asked, upper ones inclusive, rows without a value only on request."""
        values = ["1", "2", "3"]
        if cursor_type == "timestamp":
            values = [f"2026-01-0{value}T00:00:00.000000" for value in values]
        sql_type = {"int": "integer", "timestamp": "timestamp"}[cursor_type]
        rows = ", ".join(f"('{value}')" for value in values)
        self._write(cursor, harness, "bounded", f"select c::{sql_type} as c from (values {rows}, (null)) t(c)")
        contract = {"c": cursor_type}
        counts = {
            (): 4,
            (("watermark", values[1]),): 1,
            (("upper_bound", values[1]),): 2,
            (("watermark", values[0]), ("upper_bound", values[1])): 1,
            (("watermark", values[0]), ("upper_bound", values[1]), ("null_cursor", True)): 2,
        }
        if Capability.INCLUSIVE_BOUND in harness.connector.capabilities:
            counts[("watermark", values[1]), ("lower_inclusive", True)] = 2
        for bounds, expected in counts.items():
            if not land_natively(cursor, harness, "bounded", contract, cursor="c", **dict(bounds)):
                pytest.skip("no native scan")
            assert len(landed_rows(cursor)) == expected, bounds
