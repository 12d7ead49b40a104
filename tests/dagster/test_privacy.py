"""Nothing of a secret, a row or this machine reaches what Dagster stores and serves."""

from __future__ import annotations

import logging
import urllib.parse
from pathlib import Path

import dagster as dg
import pytest

from pz_dagster import PzProject, PzResource, build_pz_definitions
from pz_engine.testing.project_factory import ProjectFactory

SECRET = "s3cr3t pa'ss@word/%25"
ROW = "a-row-value-nobody-shall-see"
VARIABLE = "a-var-nobody-shall-see"


@pytest.fixture
def secretive(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> ProjectFactory:
    """A secret in a connection, a bad row value, failing checks with samples and a sink that cannot be written."""
    monkeypatch.setenv("LAKE_PASSWORD", SECRET)
    shop.write("in/orders.csv", f"id,amount\n1,{ROW}\n")
    shop.write("in/notes.csv", f"id,note\n1,{ROW}\n")
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("path: mart.duckdb", "path: ${LAKE_PASSWORD}/mart.duckdb"))
    shop.pipeline(
        "notes",
        "INSERT INTO {{ sink('lake', 'notes', format: 'csv') }}\n"
        "SELECT id, note, '{{ var('word') }}' AS word "
        "FROM {{ source('erp', 'notes', path: 'notes.csv', columns: { id: 'int', note: 'varchar' }) }}",
    )
    shop.sidecar("notes", "checks:\n  - accepted_values: { column: note, values: [fine] }\n")
    shop.write("project.yml", 'name: shop\nversion: "1"\nvars: { word: none }\n')
    return shop


def stored(directory: Path) -> str:
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in directory.rglob("*") if path.is_file())


def test_a_failing_run_leaves_no_value_anywhere(
    secretive: ProjectFactory, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Event log, run records, captured output, logs and exception texts are searched, and the snapshot with them."""
    home = tmp_path / "home"
    home.mkdir()
    project = PzProject(secretive.directory, vars={"word": VARIABLE})
    project.prepare()
    definitions = build_pz_definitions(project, resource=PzResource(env={"OTHER": dg.EnvVar("LAKE_PASSWORD")}))
    with caplog.at_level(logging.DEBUG), dg.DagsterInstance.local_temp(str(home)) as instance:
        result = dg.materialize(
            [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)],
            instance=instance,
            resources=definitions.resources,
            raise_on_error=False,
        )
        failures = [event for event in result.all_events if event.is_step_failure]
        assert {event.step_key for event in failures} == {"shop__lake_orders", "shop__mart_events", "shop__lake_notes"}
        records = instance.all_logs(result.run_id)
    output = capfd.readouterr()
    texts = {
        "instance": stored(home),
        "records": str(records),
        "logs": caplog.text,
        "stdout": output.out,
        "stderr": output.err,
        "snapshot": project.snapshot_path.read_text(),
    }
    assert "PZ0510" in texts["stdout"]
    for place, text in texts.items():
        for form in (SECRET, urllib.parse.quote(SECRET, safe=""), SECRET.replace("'", "''"), "s3cr3t", ROW, VARIABLE):
            assert form not in text, (place, form)
    for place in ("records", "stdout", "stderr", "snapshot"):
        assert str(secretive.directory) not in texts[place], place


def test_definitions_show_no_secret(secretive: ProjectFactory) -> None:
    """Specs, tags and the resource's text are clean."""
    project = PzProject(secretive.directory, vars={"word": VARIABLE})
    definitions = build_pz_definitions(project, resource=PzResource(env={"A": SECRET}))
    text = ""
    for each in definitions.assets or []:
        if isinstance(each, dg.AssetsDefinition):
            text += f"{each.specs} {list(each.check_specs)} {each.op.tags}"
        else:
            text += str(each)
    text += f"{definitions.resources} {project}"
    for form in ("s3cr3t", VARIABLE, ROW):
        assert form not in text
    assert str(secretive.directory) not in text.replace(repr(project), "")


def test_a_directory_that_cannot_be_written_is_a_clear_refusal(
    shop: ProjectFactory, instance: dg.DagsterInstance
) -> None:
    """The operating system's reason is shown with a project-relative name, and nothing else of the machine."""
    from tests.dagster.conftest import Workbench
    from tests.dagster.test_failures import failure_of

    (shop.directory / ".pz").mkdir()
    (shop.directory / ".pz" / "runs").write_text("in the way")
    result = Workbench(shop, instance).materialize(raise_on_error=False)
    text = failure_of(result, "shop__lake_orders")
    assert "refused" in text
    assert str(shop.directory) not in text
