"""Names that Dagster spells otherwise, or that are taken: each lands its rows, or is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from pz_dagster import PzTranslator, PzTranslatorSettings, build_pz_definitions
from pz_dagster.errors import PzDefinitionError
from pz_dagster.project import PzProject
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_failures import failure_of
from tests.dagster.test_materialize import materialized

LONG = "x" * 180


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def flow(
    directory: Path,
    *,
    project: str = "shop",
    source: str = "erp",
    entity: str = "orders",
    pipeline: str = "clean",
    target: str = "mart",
    table: str = "out",
    columns: tuple[str, ...] = ("id", "amount"),
) -> ProjectFactory:
    """One csv through one pipeline, each column with a check, into one DuckDB table."""
    factory = ProjectFactory(directory / "project", json.dumps({"name": project, "version": "1"}))
    numbers = ["\n" + ",".join(str(row + place) for place in range(len(columns))) for row in (10, 20)]
    factory.write("in/rows.csv", ",".join(map(quoted, columns)) + "".join(numbers) + "\n")
    read = {"path": "rows.csv", "columns": dict.fromkeys(columns, "bigint")}
    connections = {
        target: {"connector": "duckdb", "path": "mart.duckdb"},
        source: {"connector": "localfiles", "root": "in", "entities": {entity: {"read": read}}},
    }
    factory.write("connections.yml", json.dumps(connections))
    factory.pipeline(
        pipeline,
        f"INSERT INTO {{{{ sink({json.dumps(target)}, {json.dumps(table)}, strategy: 'replace') }}}}\n"
        f"SELECT {', '.join(map(quoted, columns))} FROM {{{{ source({json.dumps(source)}, {json.dumps(entity)}) }}}}",
    )
    factory.sidecar(pipeline, f"checks: {json.dumps([{'not_null': [each]} for each in columns])}\n")
    return factory


def landed(factory: ProjectFactory, table: str) -> list[tuple[int, ...]]:
    with duckdb.connect(str(factory.directory / "mart.duckdb")) as connection:
        return connection.execute(f"select * from {quoted(table)} order by 1").fetchall()


PROJECTS = {"my shop": "my_shop", "größe": "gr__e", "1.shop/eu": "1_shop_eu", "class": "class", "qu'o\"te": "qu_o_te"}
PIPELINES = ("select", "context", "int", "_", "__x__", "CLEAN")
CONNECTIONS = ("select", "dict", "_", LONG)
ENTITIES = {"größe": "gr__e", "sel'ect": "sel_ect", 'qu"ote': "qu_ote", "1st": "1st", "{{x}}": "__x__", LONG: LONG}


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        *(({"project": name}, [(key, "src_erp__orders"), (key, "clean"), ("mart", "out")]) for name, key in PROJECTS.items()),
        *(({"pipeline": name}, [("shop", "src_erp__orders"), ("shop", name), ("mart", "out")]) for name in PIPELINES),
        *(({"source": n, "target": f"{n}2"}, [("shop", f"src_{n}__orders"), ("shop", "clean"), (f"{n}2", "out")]) for n in CONNECTIONS),
        *(({"entity": n, "table": n}, [("shop", f"src_erp__{key}"), ("shop", "clean"), ("mart", key)]) for n, key in ENTITIES.items()),
        ({"source": "shop"}, [("shop", "src_shop__orders"), ("shop", "clean"), ("mart", "out")]),
        ({"target": "shop"}, [("shop", "src_erp__orders"), ("shop", "clean"), ("shop", "out")]),
    ],
    ids=str,
)  # fmt: skip
def test_names_are_folded_and_rows_land(
    tmp_path: Path, instance: dg.DagsterInstance, names: dict[str, str], keys: list[tuple[str, ...]]
) -> None:
    """Projects and entities may be called anything, pipelines and connections like any word of SQL or Dagster."""
    factory = flow(tmp_path, **names)  # type: ignore[arg-type]
    result = Workbench(factory, instance).materialize()
    assert materialized(result) == {"/".join(key) for key in keys}
    assert [each.passed for each in result.get_asset_check_evaluations()] == [True, True]
    assert landed(factory, names.get("table", "out")) == [(10, 11), (20, 21)]


@pytest.mark.parametrize(
    ("columns", "checks"),
    [
        (("a b", "c.d"), ("a_b", "c_d")),
        (("größe", "日本"), ("gr__e", "__")),
        (("select", "1st"), ("select", "1st")),
        (('qu"ote', "it's"), ("qu_ote", "it_s")),
        (("a\nb", "$x"), ("a_b", "_x")),
        ((LONG, "y"), (LONG[: 200 - len("check_clean_not_null_")], "y")),
    ],
    ids=["blanks", "letters", "words", "quotes", "signs", "long"],
)
def test_columns_may_be_called_anything(
    tmp_path: Path, instance: dg.DagsterInstance, columns: tuple[str, ...], checks: tuple[str, ...]
) -> None:
    """Their checks are folded; the schema and the lineage that Dagster shows spell them as they are."""
    factory = flow(tmp_path, columns=columns)
    translator = PzTranslator(PzTranslatorSettings(column_lineage=True))
    result = Workbench(factory, instance, translator=translator).materialize()
    evaluated = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert evaluated == {f"check_clean_not_null_{each}": True for each in checks}
    assert landed(factory, "out") == [(10, 11), (20, 21)]
    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        assert [each.name for each in metadata["dagster/column_schema"].value.columns] == list(columns)
        if event.asset_key != dg.AssetKey(["shop", "src_erp__orders"]):
            assert set(metadata["dagster/column_lineage"].value.deps_by_column) == set(columns)  # type: ignore[union-attr]


def test_long_names_fit_into_an_instance_on_disk(tmp_path: Path) -> None:
    """Names of ops become names of files there."""
    factory = flow(tmp_path, project="p" * 120, table="t" * 120)
    home = tmp_path / "home"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        assert Workbench(factory, instance).materialize().success
    assert landed(factory, "t" * 120) == [(10, 11), (20, 21)]


@pytest.mark.parametrize(
    ("names", "first", "second"),
    [
        ({"columns": ("a-b", "a_b")}, "check_clean_not_null_a-b", "check_clean_not_null_a_b"),
        ({"pipeline": "p" * 200}, f"check_{'p' * 200}_not_null_amount", f"check_{'p' * 200}_not_null_id"),
        ({"pipeline": "out", "target": "shop"}, "out", "shop.out"),
        ({"pipeline": "pz_state"}, "pz_state", "the asset of stored positions"),
        ({"target": "shop", "table": "pz_state"}, "shop.pz_state", "the asset of stored positions"),
        ({"pipeline": "pz_errors"}, "pz_errors", "the placeholder of a project that does not compile"),
    ],
    ids=["checks", "long", "sink", "state", "sink-state", "placeholder"],
)
def test_names_that_meet_are_refused(tmp_path: Path, names: dict[str, str], first: str, second: str) -> None:
    """`PZ0702` names both and a file; Dagster would only say that a key is there twice, or nothing at all."""
    factory = flow(tmp_path, **names)  # type: ignore[arg-type]
    with pytest.raises(PzDefinitionError) as caught:
        build_pz_definitions(PzProject(factory.directory))
    (problem,) = caught.value.problems
    assert problem.code == "PZ0702"
    assert problem.file is not None
    assert f"'{first}' (" in problem.message
    assert f"'{second}' (" in problem.message


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ({"pipeline": "a-b"}, "PZ0136"),
        ({"pipeline": "1st"}, "PZ0136"),
        ({"pipeline": "größe"}, "PZ0136"),
        ({"source": "a b"}, "PZ0136"),
        ({"source": "a__b"}, "PZ0136"),
        ({"entity": "a b"}, "PZ0344"),
        ({"entity": "a..b"}, "PZ0344"),
        ({"pipeline": "src_erp__orders"}, "PZ0230"),
        ({"columns": ("Id", "id")}, "PZ0101"),
        ({"project": " "}, "PZ0101"),
    ],
    ids=str,
)
def test_names_that_the_engine_refuses_are_listed(
    tmp_path: Path, instance: dg.DagsterInstance, names: dict[str, str], code: str
) -> None:
    """The location loads with a placeholder, and materializing it says which name, where and what to do."""
    factory = flow(tmp_path, **names)  # type: ignore[arg-type]
    bench = Workbench(factory, instance)
    (placeholder,) = (key for each in bench.assets for key in each.keys if key.path[-1] == "pz_errors")
    result = bench.materialize(raise_on_error=False)
    text = failure_of(result, "__".join(placeholder.path))
    assert f"error {code}: " in text
    assert " — hint: " in text


def pair(directory: Path, first: tuple[str, str, str], second: tuple[str, str, str], **names: str) -> ProjectFactory:
    """Two flows, each an entity, a pipeline and a table."""
    source, target = names.get("source", "erp"), names.get("target", "lake")
    factory = ProjectFactory(directory / "project", 'name: shop\nversion: "1"\n')
    factory.write("in/rows.csv", "id\n1\n2\n")
    entities = {each[0]: {"read": {"path": "rows.csv", "columns": {"id": "bigint"}}} for each in (first, second)}
    connections = {
        source: {"connector": "localfiles", "root": "in", "entities": entities},
        "lake": {"connector": "localfiles", "root": "out"},
        "mart": {"connector": "duckdb", "path": "mart.duckdb"},
    }
    factory.write("connections.yml", json.dumps(connections))
    how = "format: 'csv', " if target == "lake" else ""
    for entity, pipeline, table in (first, second):
        sink = f"{{{{ sink('{target}', '{table}', {how}strategy: 'replace') }}}}"
        factory.pipeline(pipeline, f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('{source}', '{entity}') }}}}")
    return factory


def test_files_that_differ_only_in_case_are_two(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """Both land, under keys that differ in case."""
    factory = pair(tmp_path, ("a", "one", "Orders"), ("b", "two", "orders"))
    result = Workbench(factory, instance).materialize()
    assert {"lake/Orders", "lake/orders"} <= materialized(result)
    written = [list((factory.directory / "out" / name).iterdir()) for name in ("Orders", "orders")]
    assert [path.read_text() for (path,) in written] == ["id\n1\n2\n", "id\n1\n2\n"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a", "clean", "x"), ("b", "CLEAN", "y")),
        (("Orders", "one", "x"), ("orders", "two", "y")),
        (("a-b", "one", "x"), ("a_b", "two", "y")),
    ],
    ids=["pipelines", "entities", "folded"],
)
def test_names_that_duckdb_takes_for_one_are_listed(
    tmp_path: Path,
    instance: dg.DagsterInstance,
    first: tuple[str, str, str],
    second: tuple[str, str, str],
) -> None:
    """Before anything has run, on the placeholder."""
    bench = Workbench(pair(tmp_path, first, second), instance)
    text = failure_of(bench.materialize(raise_on_error=False), "shop__pz_errors")
    assert "error PZ0110: " in text


def test_tables_that_differ_only_in_case_are_refused(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """A DuckDB file takes them for one, so nothing is written: the second would replace the first."""
    factory = pair(tmp_path, ("a", "one", "Orders"), ("b", "two", "orders"), target="mart")
    result = Workbench(factory, instance).materialize(raise_on_error=False)
    assert materialized(result) == set()
    assert not (factory.directory / "mart.duckdb").exists()
    for step in ("shop__mart_Orders", "shop__mart_orders"):
        assert "PZ0206: outputs mart.Orders, mart.orders are one and the same" in failure_of(result, step)


def test_a_load_depends_on_no_namesake_of_what_it_reads(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    """The connection is called like the project and its entity like a pipeline; only the remote entity has that name."""
    factory = pair(tmp_path, ("items", "orders", "a"), ("orders", "two", "b"), source="shop")
    bench = Workbench(factory, instance)
    specs = {spec.key.to_user_string(): spec for each in bench.assets for spec in each.specs}
    assert [dep.asset_key.to_user_string() for dep in specs["shop/src_shop__items"].deps] == ["shop/items"]
    assert list(specs["shop/src_shop__orders"].deps) == []
    assert bench.materialize().success
