"""The six check types, passing and failing, with their counts, samples and sentences."""

from __future__ import annotations

import pytest

from pz_engine import NodeResult, NodeStatus
from pz_engine.testing.project_factory import ProjectFactory

ROWS = """
SELECT *, 'x' AS kind FROM (VALUES
  (1, 'open', DATE '2020-01-01'),
  (2, 'open', NULL),
  (2, 'lost', DATE '2020-01-02'),
  (NULL, NULL, DATE '2020-01-03')
) t(id, status, day)
"""


def check(factory: ProjectFactory, yaml: str, *, engine: str = "") -> NodeResult:
    factory.write("project.yml", f'name: demo\nversion: "1"\n{engine}')
    factory.pipeline("p", ROWS)
    factory.sidecar("p", f"checks:\n  - {yaml}\n")
    outcome = factory.run()
    return next(result for result in outcome.results if result.kind.value == "Check")


@pytest.mark.parametrize(
    ("yaml", "violations", "text"),
    [
        ("not_null: [id, day]", 2, "{id=2, status=open, day=NULL, kind=x}"),
        ("unique: [id]", 1, "{id=2}"),
        ("row_count: { min: 5 }", 1, "the relation has 4 row(s), expected at least 5"),
        ("row_count: { max: 3 }", 1, "expected at most 3"),
        ("freshness: { column: day, max_age: 1d }", 1, "2020-01-03"),
        ("accepted_values: { column: status, values: [open] }", 1, "{status=lost}"),
        (
            "custom_sql: { name: none_lost, sql: \"SELECT id FROM staging.p WHERE status = 'lost' -- end\" }",
            1,
            "{id=2}",
        ),
    ],
)
def test_violations_are_counted_and_shown(factory: ProjectFactory, yaml: str, violations: int, text: str) -> None:
    """`rows` is the number of violations; the message names type and relation, the sample is on its own line."""
    result = check(factory, yaml)
    assert (result.status, result.rows) == (NodeStatus.FAILED, violations)
    assert result.error is not None
    assert result.error.code == "PZ0510"
    first, second = result.error.message.split("\n")
    assert "staging.p" in first
    assert f"{violations} violation(s)" in first
    assert text in second


@pytest.mark.parametrize(
    "yaml",
    [
        "not_null: [kind]",
        "unique: [id, status, day]",
        "row_count: { min: 4, max: 4 }",
        "freshness: { column: day, max_age: 36500d }",
        "accepted_values: { column: status, values: [open, lost] }",
        "custom_sql: { name: none, sql: SELECT 1 WHERE false; }",
    ],
)
def test_a_passing_check_has_no_violation(factory: ProjectFactory, yaml: str) -> None:
    """NULL passes accepted_values; bounds are inclusive."""
    result = check(factory, yaml)
    assert (result.status, result.rows, result.error) == (NodeStatus.SUCCESS, 0, None)


@pytest.mark.parametrize(
    ("yaml", "engine"),
    [
        ("not_null: [id]", "engine: { check_samples: false }\n"),
        ("not_null: { columns: [id], sample_values: false }", ""),
    ],
)
def test_samples_can_be_switched_off(factory: ProjectFactory, yaml: str, engine: str) -> None:
    """By project or by check; the message says so."""
    result = check(factory, yaml, engine=engine)
    assert result.error is not None
    assert result.error.message.endswith("samples are disabled")


def test_a_check_that_cannot_run_is_a_failed_node(factory: ProjectFactory) -> None:
    """A missing column is `PZ0501`, not a violation."""
    result = check(factory, "not_null: [nope]")
    assert result.error is not None
    assert result.error.code == "PZ0501"
