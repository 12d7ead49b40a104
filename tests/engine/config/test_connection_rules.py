"""connections.yml row by row: connections, entities, both sides, and where variables are resolved."""

from __future__ import annotations

import pytest

from pz_engine.config.entity_sides import entity_name_problem

CONNECTION = "c:\n  connector: localfiles\n"
ENTITY = CONNECTION + "  entities:\n    e:\n"
REFUSED = [
    ("c: text\n", "PZ0101:1"),
    ("c:\n", "PZ0101:1"),
    ("c: [a]\n", "PZ0101:1"),
    ("c:\n  connector: ''\n", "PZ0101:2"),
    ("c:\n  connector: 5\n", "PZ0101:2"),
    ("c:\n  root: data\n", "PZ0101:1"),
    ("outputs:\n  connector: x\n", "PZ0347:1"),
    ("'': {connector: x}\n", "PZ0136:1"),
    ("my-files: {connector: x}\n", "PZ0136:1"),
    ("café: {connector: x}\n", "PZ0136:1"),
    ("a___b: {connector: x}\n", "PZ0136:1"),
    (CONNECTION + "  entities: text\n", "PZ0101:3"),
    (CONNECTION + "  entities: []\n", "PZ0101:3"),
    (CONNECTION + "  max_concurrency: -1\n", "PZ0122:3"),
    (CONNECTION + "  max_concurrency: 1.5\n", "PZ0122:3"),
    (CONNECTION + "  max_concurrency: '2'\n", "PZ0122:3"),
    (CONNECTION + "  max_concurrency: 2147483648\n", "PZ0122:3"),
    (CONNECTION + "  rate_limit: 60\n", "PZ0318:3"),
    (CONNECTION + "  rate_limit:\n    requests_per_minute: 0\n", "PZ0318:4"),
    (CONNECTION + "  rate_limit:\n    requests_per_minute: 1000001\n", "PZ0318:4"),
    (CONNECTION + "  rate_limit:\n    requests_per_minute: 60\n    burst: 0\n", "PZ0318:5"),
    (CONNECTION + "  rate_limit:\n    requests_per_minute: 60\n    burst: 1000001\n", "PZ0318:5"),
    (CONNECTION + "  rate_limit:\n    requests_per_minute: 60\n    burst:\n", "PZ0318:5"),
    (CONNECTION + "  rate_limit:\n    requests_per_minute: 60\n    per_second: 1\n", "PZ0318:5"),
    (CONNECTION + "  retry:\n", "PZ0121:3"),
    (CONNECTION + "  retry: []\n", "PZ0121:3"),
    (CONNECTION + "  retry:\n    max_attempts: 101\n", "PZ0121:4"),
    (CONNECTION + "  retry:\n    max_attempts: '3'\n", "PZ0121:4"),
    (CONNECTION + "  retry:\n    max_attempts:\n", "PZ0121:4"),
    (CONNECTION + "  retry:\n    base_delay: 0s\n", "PZ0121:4"),
    (CONNECTION + "  retry:\n    base_delay: 1\n", "PZ0121:4"),
    (CONNECTION + "  retry:\n    max_delay: 1w\n", "PZ0121:4"),
    (CONNECTION + "  retry:\n    base_delay: 2s\n    max_delay: 1999ms\n", "PZ0121:5"),
    (CONNECTION + "  retry:\n    delay: 2s\n    jitter: 1s\n", "PZ0121:4 PZ0121:5"),
    (CONNECTION + "  allow_unsigned_extensions: True\n", "PZ0101:3"),
    (CONNECTION + "  allow_unsigned_extensions: 'true'\n", "PZ0101:3"),
    (ENTITY, "PZ0101:4"),
    (CONNECTION + "  entities:\n    e: {}\n", "PZ0101:4"),
    (CONNECTION + "  entities:\n    e: text\n", "PZ0101:4"),
    (CONNECTION + "  entities:\n    '': {read: }\n", "PZ0344:4"),
    (CONNECTION + "  entities:\n    .a: {read: }\n    a.: {read: }\n    a b: {read: }\n", "PZ0344:4 PZ0344:5 PZ0344:6"),
    (CONNECTION + '  entities:\n    "a\\tb": {read: }\n    "a\\eb": {read: }\n', "PZ0344:4 PZ0344:5"),
    (ENTITY + "      reads: {}\n      writes: {}\n", "PZ0101:5 PZ0101:6"),
    (ENTITY + "      read: []\n", "PZ0101:5"),
    (ENTITY + "      write: text\n", "PZ0101:5"),
    (ENTITY + "      read:\n        columns: [a]\n", "PZ0101:6"),
    (ENTITY + "      read:\n        columns: {a: [int]}\n", "PZ0101:6"),
    (ENTITY + "      read:\n        columns:\n          a: {type: int}\n", "PZ0101:7"),
    (ENTITY + "      read:\n        columns:\n          a: Int\n          b: text\n", "PZ0101:7 PZ0101:8"),
    (ENTITY + "      read:\n        columns:\n          a: decimal(39,0)\n          b: decimal(5,6)\n          c:\n",
     "PZ0101:7 PZ0101:8 PZ0101:9"),
    (ENTITY + "      read:\n        columns:\n          '': int\n", "PZ0101:7"),
    (ENTITY + "      read:\n        sync:\n          mode: full\n", "PZ0334:7"),
    (ENTITY + "      read:\n        sync:\n          mode: Incremental\n          cursor: u\n", "PZ0334:7"),
    (ENTITY + "      read:\n        sync:\n          mode: [auto]\n", "PZ0334:7"),
    (ENTITY + "      read:\n        sync:\n          mode: incremental\n          cursor: u\n          initial: []\n",
     "PZ0334:9"),
    (ENTITY + "      read:\n        sync:\n          mode: incremental\n          cursor: u\n          max_window: {}\n",
     "PZ0334:9"),
    (ENTITY + "      read:\n        sync:\n          mode: incremental\n          cursor: ''\n", "PZ0334:8"),
    (ENTITY + "      read:\n        sync:\n          mode: incremental\n          cursors: u\n", "PZ0334:8 PZ0334:7"),
    (ENTITY + "      read:\n        sync:\n          mode: cdc\n          cursor: u\n", "PZ0334:8"),
    (ENTITY + "      read:\n        sync:\n          mode: auto\n          slot: s\n          until: now\n",
     "PZ0334:8 PZ0334:9"),
    (ENTITY + "      read:\n        incremental: u\n", "PZ0332:6"),
    (ENTITY + "      read:\n        table: orders\n", "PZ0348:6"),
    (ENTITY + "      read:\n        rate_limit:\n        max_concurrency:\n", "PZ0318:6 PZ0318:7"),
    (ENTITY + "      read:\n        retry: {max_attempts: 0}\n", "PZ0121:6"),
    (ENTITY + "      write:\n        strategy: Merge\n", "PZ0228:6"),
    (ENTITY + "      write:\n        strategy: ''\n", "PZ0228:6"),
    (ENTITY + "      write:\n        strategy: 5\n", "PZ0334:6"),
    (ENTITY + "      write:\n        strategy: true\n", "PZ0334:6"),
    (ENTITY + "      write:\n        keys:\n", "PZ0101:6"),
    (ENTITY + "      write:\n        keys: [a, 5]\n", "PZ0101:6"),
    (ENTITY + "      write:\n        keys:\n          - a\n          - ''\n", "PZ0101:8"),
    (ENTITY + "      write:\n        duplicates: Accept\n", "PZ0334:6"),
    (ENTITY + "      write:\n        duplicates:\n", "PZ0334:6"),
    (ENTITY + "      write:\n        strategy: merge\n        on_delete:\n", "PZ0334:7"),
    (ENTITY + "      write:\n        strategy: append\n        on_delete: ignore\n", "PZ0334:7"),
    (ENTITY + "      write:\n        schema_policy:\n", "PZ0334:6"),
    (ENTITY + "      write:\n        mode: merge\n        accept_duplicates: true\n        write: {}\n",
     "PZ0333:6 PZ0333:7 PZ0333:8"),
    (ENTITY + "      write:\n        input: orders\n        table: t\n        rate_limit: 1\n        max_concurrency: 1\n",
     "PZ0112:6 PZ0348:7 PZ0318:8 PZ0122:9"),
    (ENTITY + "      write:\n        retry: x\n", "PZ0121:6"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_each_wrong_value_is_refused_at_its_line(project, text, expected):
    """Exactly the listed problems are found, each with its code and line, and each says what to do."""
    project.write("connections.yml", text)
    problems = project.problems()
    assert sorted(f"{problem.code}:{problem.line}" for problem in problems) == sorted(expected.split())
    assert {problem.file for problem in problems} == {"connections.yml"}
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize(
    "text",
    [
        CONNECTION + "  entities:\n",
        CONNECTION + "  entities: {}\n",
        CONNECTION + "  allow_unsigned_extensions:\n",
        CONNECTION + "  allow_unsigned_extensions: true\n  max_concurrency: 2147483647\n",
        CONNECTION + "  rate_limit: {requests_per_minute: 1000000, burst: 1}\n",
        CONNECTION + "  retry: {}\n",
        CONNECTION + "  retry: {max_attempts: 100, base_delay: 1ms, max_delay: 1ms}\n",
        CONNECTION + "  whatever: {the: [connector, makes, 5]}\n",
        ENTITY + "      read:\n      write:\n",
        ENTITY + "      read:\n        columns:\n",
        ENTITY + "      read: {columns: {}}\n",
        ENTITY + "      read: {columns: {a: 'decimal(38, 0)', b: 'decimal(1,1)', 'a b': uuid}}\n",
        ENTITY + "      read: {sync: {mode: auto}, partition_column: id, partitions: 4, files_per_partition: 2}\n",
        ENTITY + "      read: {sync: {mode: cdc, slot: 5}}\n",
        ENTITY + "      read: {sync: {mode: incremental, cursor: u}, cursor: u, max_pages: 3}\n",
        ENTITY + "      write: {strategy: merge, keys: [id], on_delete: soft, schema_policy: evolve}\n",
        ENTITY + "      write: {strategy: append, keys: [], duplicates: accept, partition_by: day}\n",
        "c:\n  connector: x\n  entities:\n    dbo.Order Lines: {read: }\n".replace(" Lines", "-Lines"),
    ],
)
def test_values_at_the_limits_are_accepted(project, text):
    """What the tables allow loads without a problem."""
    assert list(project.write("connections.yml", text).load().connections) == ["c"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("01_x: {connector: x}\n", "rename it to x_01"),
        ("my  files-2: {connector: x}\n", "rename it to my_files_2"),
        ("a__b: {connector: x}\n", "rename it to a_b"),
        (CONNECTION + "  retry: {max_attempt: 3}\n", "did you mean 'max_attempts'?"),
        (CONNECTION + "  rate_limit: {requests_per_minute: 1, brust: 3}\n", "did you mean 'burst'?"),
        (ENTITY + "      raed: {}\n", "did you mean 'read'?"),
        (ENTITY + "      read: {columns: {a: bigin}}\n", "did you mean 'bigint'?"),
        (ENTITY + "      read: {columns: {a: text}}\n", "types: int, bigint"),
        (ENTITY + "      read: {columns: {a: decimal(10.2)}}\n", "'decimal(10,2)'"),
        (ENTITY + "      read: {incremental: {cursor: changed_at}}\n",
         "write sync: {mode: incremental, cursor: changed_at}"),
        (ENTITY + "      read: {incremental: changed_at}\n", "write sync: {mode: incremental, cursor: changed_at}"),
        (ENTITY + "      read: {incremental: {cursor: 'a; drop'}}\n", "write sync: {mode: incremental, cursor: <column>}"),
        (ENTITY + "      read: {sync: {mode: incremntal, cursor: u}}\n", "did you mean 'incremental'?"),
        (ENTITY + "      read: {sync: {mode: windowed, cursor: u}}\n", "max_window and initial"),
        (ENTITY + "      read: {sync: {mode: feed}}\n", "remove sync"),
        (ENTITY + "      read: {sync: {mode: incremental, cursor: u, max_windows: 1d}}\n", "did you mean 'max_window'?"),
        (ENTITY + "      read: {schema: dbo}\n", "name the entity dbo.e and remove schema"),
        (ENTITY + "      write: {schema: dbo, table: orders}\n", "name the entity dbo.orders and remove schema and table"),
        (ENTITY + "      write: {strategy: mrege}\n", "did you mean 'merge'?"),
        (ENTITY + "      write: {schema_policy: additve}\n", "did you mean 'additive'?"),
        (ENTITY + "      write: {strategy: merge, on_delete: softt}\n", "did you mean 'soft'?"),
        (ENTITY + "      write: {mode: replace}\n", "write strategy: replace"),
        (ENTITY + "      write: {accept_duplicates: true}\n", "write duplicates: accept"),
        (ENTITY + "      write: {input: orders}\n", "INSERT INTO"),
        (ENTITY + "      write: {max_concurrency: 2}\n", "move max_concurrency to the connection"),
        ("outputs: {}\n", "sink("),
    ],
)  # fmt: skip
def test_hints_say_what_to_write(project, text, hint):
    """A retired, misplaced or misspelled key comes with what to write instead."""
    project.write("connections.yml", text)
    (problem,) = project.problems()
    assert hint in problem.hint


def test_only_the_connectors_own_configuration_is_interpolated(project):
    """Reserved keys and the names of keys stay as they are typed."""
    project.write("connections.yml", "c:\n  connector: ${C}\n  ${K}:\n    - ${K}: ${C}\n")
    connection = project.load({"C": "v", "K": "k"}).connections["c"]
    assert (connection.connector, connection.config) == ("${C}", {"${K}": [{"${K}": "v"}]})
    project.write("connections.yml", CONNECTION + "  max_concurrency: ${N}\n  retry: {max_attempts: '${N}'}\n")
    assert [code for code, _ in project.found({"N": "3"})] == ["PZ0122", "PZ0121"]


def test_each_reference_below_entities_is_one_warning(project):
    """A value that several aliases repeat is written once, and so is its warning; an escape is none."""
    project.write(
        "connections.yml",
        ENTITY + "      read:\n        a: &x ['${A}', '$${B}']\n        b: [*x, *x]\n        c: 'x${A}${B}'\n",
    )
    assert [(warning.code, warning.line) for warning in project.load().warnings] == [("PZ0133", 6), ("PZ0133", 8)]


@pytest.mark.parametrize("name", ["orders", "dbo.orders", "a.b.c", "Größe", "2024", "a-b/c:d", "*", "$x"])
def test_an_entity_is_named_as_the_remote_system_spells_it(name):
    """Only blanks, control characters and empty parts are refused."""
    assert entity_name_problem(name) is None


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a b", "a\u00a0b", "a\n", "a\x07b", "\u2028"])
def test_other_entity_names_are_refused(name):
    """Each refusal says why."""
    assert entity_name_problem(name)
