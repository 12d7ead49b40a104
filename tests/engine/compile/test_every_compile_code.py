"""Each code that compiling, selecting or dry-compiling can give, from the smallest project that gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pz_engine.compile.selection import resolve_selection
from pz_engine.errors.codes import all_codes
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.validate.tiers import check_sql

PLAIN = "c: {connector: localfiles}\n"
CDC = "c: {connector: x, entities: {e: {read: {sync: {mode: cdc}}}}}\n"
SOURCE = "{{ source('c', 'e') }}"
FLOOR = f"select * from {SOURCE} where u > {{{{ watermark('c', 'e') }}}}"
EPHEMERAL = "pipeline: {}\nmaterialization: ephemeral\n"


def read(options: str) -> str:
    return f"c:\n  connector: x\n  entities:\n    e:\n      read: {options}\n"


def write(options: str) -> str:
    return f"c:\n  connector: x\n  entities:\n    e:\n      write: {options}\n"


def sql(text: str, connections: str = PLAIN, name: str = "p") -> dict[str, str]:
    return {"connections.yml": connections, f"pipelines/{name}.sql": text}


P1 = "pipelines/p.sql:1"
CASES: dict[str, list[tuple[Mapping[str, str], list[tuple[str, str | None]]]]] = {
    "PZ0110": [
        (sql("select 1 from {{ source('c', 'a.b') }}, {{ source('c', 'a_b') }}"), [("PZ0110", P1)]),
        (
            sql("select 1 from {{ source('a', '_b') }}, {{ source('a_', 'b') }}", "a: {connector: x}\na_: {connector: x}\n"),
            [("PZ0110", P1)],
        ),
        (sql("select 1") | {"pipelines/P.sql": "select 2"}, [("PZ0110", "pipelines/p.sql")]),
        (
            sql("select 1") | {"pipelines/P.sql": "select 2", "pipelines/configs/P.yml": EPHEMERAL.format("P")},
            [("PZ0110", "pipelines/p.sql")],
        ),
        (
            sql(f"select 1 from {SOURCE}, {{{{ source('c', 'e__changes') }}}}", CDC),
            [("PZ0110", P1)],
        ),
    ],
    "PZ0137": [(sql("{{ source('c', 'e', x: {1: 2}) }}"), [("PZ0137", P1)])],
    "PZ0201": [
        (sql("select 1\nfrom {{ source('cc', 'e') }}"), [("PZ0201", "pipelines/p.sql:2")]),
        (sql("select 1\n\nfrom {{ ref('q') }}"), [("PZ0201", "pipelines/p.sql:3")]),
        (sql("INSERT INTO {{ sink('cc', 'e') }} select 1"), [("PZ0201", P1)]),
        (sql("select 1 from {{ source('c') }}"), [("PZ0201", P1)]),
    ],
    "PZ0202": [
        (sql("select 1 from {{ ref('p') }}"), [("PZ0202", None)]),
        (
            sql("from {{ ref('q') }}") | {"pipelines/q.sql": "from {{ ref('r') }}", "pipelines/r.sql": "from {{ ref('p') }}"},
            [("PZ0202", None)],
        ),
    ],
    "PZ0204": [
        (
            {"pipelines/e.sql": "select 1", "pipelines/f.sql": "select 1\nfrom {{ ref('e') }}",
             "pipelines/configs/e.yml": EPHEMERAL.format("e"), "pipelines/configs/f.yml": EPHEMERAL.format("f")},
            [("PZ0204", "pipelines/f.sql:2")],
        ),
    ],
    "PZ0205": [
        (
            {"pipelines/e.sql": "select 1 id", "pipelines/configs/e.yml": EPHEMERAL.format("e") + "checks:\n  - unique: [id]\n"},
            [("PZ0205", "pipelines/configs/e.yml:4")],
        ),
    ],
    "PZ0206": [
        (sql("INSERT INTO {{ sink('c', 'e') }} select 1") | {"pipelines/q.sql": "INSERT INTO {{ sink('c', 'e') }} select 1"},
         [("PZ0206", "pipelines/q.sql:1")]),
    ],
    "PZ0208": [
        (sql("select 1 from {{ sink('c', 'e') }}"), [("PZ0208", P1)]),
        (sql("WITH a AS (select 1) INSERT INTO {{ sink('c', 'e') }} from a"), [("PZ0208", P1)]),
        (sql("INSERT INTO {{ sink('c') }} select 1"), [("PZ0208", P1)]),
        (sql("INSERT INTO [{{ sink('c', 'e') }}, {{ sink('c', 'e') }}] select 1"), [("PZ0208", P1)]),
        (
            {"connections.yml": PLAIN, "pipelines/e.sql": "INSERT INTO {{ sink('c', 'e') }} select 1",
             "pipelines/configs/e.yml": EPHEMERAL.format("e")},
            [("PZ0208", "pipelines/e.sql:1")],
        ),
    ],
    "PZ0209": [(sql("INSERT INTO {{ sink('c', 'e', strategy: 'merge') }} select 1"), [("PZ0209", P1)]),
               ({"connections.yml": write("\n        format: csv\n        strategy: merge")}, [("PZ0209", "connections.yml:7")])],
    "PZ0211": [(sql("INSERT INTO {{ sink('c', 'e', keys: ['a']) }} select 1"), [("PZ0211", P1)]),
               ({"connections.yml": write("\n        strategy: append\n        keys: [a]")}, [("PZ0211", "connections.yml:7")])],
    "PZ0212": [
        ({"connections.yml": read("\n        columns: {id: int}\n        sync:\n          mode: incremental\n          cursor: u")},
         [("PZ0212", "connections.yml:9")]),
        (sql("from {{ source('c', 'e', columns: {u: 'varchar'}, sync: {mode: 'incremental', cursor: 'u'}) }}"), [("PZ0212", P1)]),
    ],
    "PZ0213": [
        ({"connections.yml": read("\n        columns: {u: date}\n        sync:\n          mode: incremental\n          cursor: u\n"
                                  "          initial: 2026-01-01\n          max_window: 36h")}, [("PZ0213", "connections.yml:11")]),
    ],
    "PZ0214": [(sql(f"INSERT INTO {{{{ sink('c', 'o') }}}} {FLOOR}"), [("PZ0214", P1)])],
    "PZ0217": [({"connections.yml": read("\n        path: '{yyyy}.csv'")}, [("PZ0217", "connections.yml:6")])],
    "PZ0218": [({"connections.yml": write("\n        partition_by: d\n        path: '{MM}.csv'")}, [("PZ0218", "connections.yml:7")])],
    "PZ0219": [({"connections.yml": write("\n        path: '{yyyy}.csv'")}, [("PZ0219", "connections.yml:6")])],
    "PZ0221": [
        ({"connections.yml": read("\n        path: '{yyyy}.csv'\n        columns: {u: date}\n        sync: {mode: incremental, cursor: u}")},
         [("PZ0221", "connections.yml:8")]),
    ],
    "PZ0222": [({"connections.yml": read("\n        files_per_partition: 0")}, [("PZ0222", "connections.yml:6")])],
    "PZ0224": [
        (sql(f"select *\nfrom {SOURCE}\nwhere u = {{{{ watermark('c', 'e') }}}}"), [("PZ0224", "pipelines/p.sql:3")]),
        (sql(f"select *\nfrom {SOURCE}\nwhere u > {{{{ watermark('c', 'e') }}}}\nand u <= {{{{ watermark('c', 'e') }}}}"),
         [("PZ0224", "pipelines/p.sql:4")]),
    ],
    "PZ0225": [
        (sql(FLOOR, read("{sync: {mode: incremental, cursor: u}}")), [("PZ0225", P1)]),
        (sql(FLOOR) | {"pipelines/q.sql": FLOOR.replace("u >", "v >")}, [("PZ0225", "pipelines/q.sql:1")]),
    ],
    "PZ0226": [(sql(FLOOR) | {"pipelines/q.sql": f"select 1\nfrom {SOURCE}"}, [("PZ0226", "pipelines/q.sql:2")])],
    "PZ0227": [(sql(FLOOR, read("{columns: {id: int}}")), [("PZ0227", P1)]),
               (sql(FLOOR, read("{columns: {u: varchar}}")), [("PZ0227", P1)])],
    "PZ0228": [(sql("INSERT INTO {{ sink('c', 'e', strategy: 'upsert') }} select 1"), [("PZ0228", P1)])],
    "PZ0229": [
        ({"connections.yml": read("\n        cursor_order: desc\n        sync: {mode: incremental, cursor: u}\n        max_pages: 5")},
         [("PZ0229", "connections.yml:8")]),
    ],
    "PZ0230": [
        (sql(f"select 1 from {SOURCE}") | {"pipelines/src_C__e.sql": "select 1"}, [("PZ0230", "pipelines/src_C__e.sql")]),
        (sql(f"select 1 from {SOURCE}", CDC) | {"pipelines/src_c__e__deletes.sql": "select 1"},
         [("PZ0230", "pipelines/src_c__e__deletes.sql")]),
    ],
    "PZ0231": [
        (sql(f"{FLOOR} and v > {{{{ watermark('c', 'e') }}}}"), [("PZ0231", P1)]),
        (sql(f"{FLOOR} and v > {{{{ watermark('c', 'e') }}}}") | {"pipelines/q.sql": f"select 1\nfrom {SOURCE}"},
         [("PZ0231", P1), ("PZ0226", "pipelines/q.sql:2")]),
    ],
    "PZ0315": [(sql(FLOOR, read("{sync: {mode: auto}}")), [("PZ0315", P1)]), (sql(FLOOR, CDC), [("PZ0315", P1)])],
    "PZ0335": [(sql(f"INSERT INTO {{{{ sink('c', 'o', strategy: 'replace') }}}} {FLOOR}"), [("PZ0335", P1)])],
    "PZ0336": [(sql(f"INSERT INTO {{{{ sink('c', 'o', strategy: 'merge', keys: ['k']) }}}} from {SOURCE}", CDC), [("PZ0336", P1)])],
    "PZ0337": [
        (sql(f"INSERT INTO {{{{ sink('c', 'o', strategy: 'merge', keys: ['k'], on_delete: 'soft') }}}} from {SOURCE}"),
         [("PZ0337", P1)]),
    ],
    "PZ0341": [(sql("from {{ source('c', 'e', format: 'csv') }}", read("")), [("PZ0341", P1)])],
    "PZ0401": [
        (
            {"pipelines/e.sql": "select 1 a), x as (select 2 a", "pipelines/p.sql": "from {{ ref('e') }}",
             "pipelines/configs/e.yml": EPHEMERAL.format("e")},
            [("PZ0401", P1)],
        ),
    ],
}  # fmt: skip

WARNINGS = {
    "PZ0201": (sql("select a from {{ source('c', 'e', column: {}) }}"), P1),
    "PZ0208": (sql("INSERT INTO {{ sink('c', 'e', Keys: ['a']) }} select 1"), P1),
    "PZ0223": (sql("select 1"), "pipelines/p.sql"),
    "PZ0232": (sql("INSERT INTO {{ sink('c', 'e') }} select '{{ run_id }}'"), "pipelines/p.sql"),
    "PZ0233": (sql("select u from {{ source('c', 'e') }} where u > {{ watermark('c', 'e') }} limit 1"), P1),
}

SELECTIONS = {
    "PZ0210": [{"names": ["nope"]}, {"names": ["--fast"]}, {"expression": "nope"}, {"expression": "a@b"}],
    "PZ0215": [{"require_choice": True}],
    "PZ0216": [{"names": ["p"], "everything": True}, {"names": ["p"], "expression": "p"}],
}


def written(project, files):
    for path, text in files.items():
        project.write(path, text)
    return project


@pytest.mark.parametrize(("code", "index"), [(code, index) for code in CASES for index in range(len(CASES[code]))])
def test_a_mistake_has_its_code_and_its_place(project, code, index):
    """The smallest project with the mistake has exactly that problem, where the author made it."""
    files, expected = CASES[code][index]
    assert written(project, files).found() == expected
    assert expected[0][0] == code


@pytest.mark.parametrize("code", WARNINGS)
def test_a_doubt_is_a_warning_with_its_place(project, code):
    """A warning never keeps a project from compiling."""
    files, place = WARNINGS[code]
    assert (code, place) in [(warning.code, warning.place) for warning in written(project, files).compile().warnings]


@pytest.mark.parametrize(
    ("code", "index"), [(code, index) for code in SELECTIONS for index in range(len(SELECTIONS[code]))]
)
def test_a_wrong_selection_has_its_code(project, code, index):
    """What is selected wrongly is told before anything runs."""
    compiled = written(project, sql("select 1") | {"pipelines/q.sql": "select 2"}).compile()
    with pytest.raises(PzValidationError) as caught:
        resolve_selection(compiled, **SELECTIONS[code][index])
    assert [problem.code for problem in caught.value.errors] == [code]


def test_sql_that_does_not_bind_is_found_by_the_dry_compile(project):
    """PZ0401 names the pipeline's line."""
    written(project, sql("select 1 a,\n  nope\nfrom (select 1 b)"))
    assert [(problem.code, problem.place) for problem in check_sql(project.compile()).errors] == [
        ("PZ0401", "pipelines/p.sql:2")
    ]


def test_no_code_of_the_compile_is_left_out():
    """Every live code from 0201 to 0233 has a case here, and every problem in a message has a next step."""
    covered = {*CASES, *WARNINGS, *SELECTIONS}
    live = {entry.code for entry in all_codes() if entry.life == "live" and "PZ0201" <= entry.code <= "PZ0299"}
    assert live - covered == set()


def test_codes_of_the_compiler_are_all_registered_as_live():
    """Whatever code stands in the compiler's source is one that the registry calls live."""
    folder = Path(__file__).parents[3] / "pz_engine" / "compile"
    named = {code for file in folder.rglob("*.py") for code in re.findall(r'"(PZ\d{4})"', file.read_text())}
    live = {entry.code for entry in all_codes() if entry.life == "live"}
    assert named - live == set()
