"""Case C17: a password with awkward characters, in every place a project can have one, is found nowhere afterwards."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
import urllib.parse
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster.components.testing import create_defs_folder_sandbox

from pz_dagster import PzProject, PzProjectComponent, PzResource, build_pz_assets, build_pz_definitions
from pz_dagster.commands import group
from pz_dagster.errors import PzDagsterError
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_component import place
from tests.dagster.test_privacy import stored

SECRET = "s3cr3t pa'ss@word/%25"
"""The case's own; its port is closed."""

FORMS = (
    SECRET,
    urllib.parse.quote(SECRET),
    urllib.parse.quote(SECRET, safe=""),
    urllib.parse.quote_plus(SECRET),
    SECRET.replace("'", "''"),
    json.dumps(SECRET)[1:-1],
    "s3cr3t",
)
API = "connector: http, base_url: 'http://127.0.0.1:1/v1', retry: { max_attempts: 1 }"
READ = "read: { path: /orders, columns: { id: int }"
NAMES = ("basic", "bearer", "param", "plain")


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectFactory:
    """Secrets as a literal password, from the environment, from the resource into URLs, as a header and in a query."""
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    factory = ProjectFactory(tmp_path / "closed", 'name: closed\nversion: "1"\nengine: { threads: 1 }\n')
    auths = {
        "basic": f'auth: {{ type: basic, user: loader, password: "{SECRET}" }}',
        "bearer": 'auth: { type: bearer, token: "${SHOP_PASSWORD}" }',
        "param": 'auth: { type: api_key, key: "${GIVEN_PASSWORD}", param: key }',
        "plain": f'headers: {{ X-Key: "{SECRET}" }}',
    }
    lines = [
        f'{name}: {{ {API}, {auth}, entities: {{ orders: {{ {READ}, query: {{ word: "{SECRET}" }} }} }} }} }}\n'
        for name, auth in auths.items()
    ]
    factory.write("connections.yml", "".join(lines) + "lake: { connector: localfiles, root: out }\n")
    for name in NAMES:
        sink = f"{{{{ sink('lake', '{name}', format: 'csv') }}}}"
        factory.pipeline(f"p_{name}", f"INSERT INTO {sink}\nSELECT id FROM {{{{ source('{name}', 'orders') }}}}")
    return factory


def assert_clean(texts: dict[str, str]) -> None:
    """Search every form in every place."""
    for place_, text in texts.items():
        for form in FORMS:
            assert form not in text, (place_, form)


def test_a_closed_port_gives_nothing_away(
    closed: ProjectFactory, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Instance directory, snapshots, captured output, logs, exception texts and chains, run directories, commands."""
    home = tmp_path / "home"
    home.mkdir()
    project = PzProject(closed.directory)
    project.prepare()
    resource = PzResource(env={"GIVEN_PASSWORD": SECRET})
    definitions = build_pz_definitions(project, resource=resource)
    assets = [each for each in definitions.assets or [] if isinstance(each, dg.AssetsDefinition)]
    texts: dict[str, str] = {}
    with caplog.at_level(logging.DEBUG), dg.DagsterInstance.local_temp(str(home)) as instance:
        result = dg.materialize(assets, instance=instance, resources=definitions.resources, raise_on_error=False)
        failed = {event.step_key: event.step_failure_data for event in result.all_events if event.is_step_failure}
        assert set(failed) == {f"closed__lake_{name}" for name in NAMES}
        texts["records"] = str(instance.all_logs(result.run_id))
        with pytest.raises(PzDagsterError) as caught:
            dg.materialize(assets, instance=instance, resources=definitions.resources)
        texts["exception"] = "".join(traceback.format_exception(caught.value))
    output = capfd.readouterr()
    texts.update(stdout=output.out, stderr=output.err, logs=caplog.text, instance=stored(home))
    texts["snapshot"] = project.snapshot_path.read_text()
    runner = CliRunner()
    for name in ("prepare", "doctor"):
        texts[name] = runner.invoke(group, [name, "--project", str(closed.directory)]).output
    texts["pz"] = stored(closed.directory / ".pz" / "runs") + stored(closed.directory / ".pz" / "journal")
    repository: Any = definitions.get_repository_def()
    texts["code location"] = dg.serialize_value(RepositorySnap.from_def(repository))
    assert all("PZ05" in texts[each] for each in ("instance", "records", "exception"))
    assert "node_completed" in texts["instance"]  # the captured output is part of it
    assert "closed__lake_param" in texts["code location"]
    assert_clean(texts)


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")
@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_a_component_keeps_no_password(closed: ProjectFactory) -> None:
    """Neither its state nor its text has one."""
    with create_defs_folder_sandbox() as sandbox:
        path = place(sandbox, closed, resource={"env": {"GIVEN_PASSWORD": SECRET}})
        with sandbox.load_component_and_build_defs(path) as (component, definitions):
            assert isinstance(component, PzProjectComponent)
            asyncio.run(component.refresh_state(sandbox.project_root))
            texts = {"component": repr(component), "resources": repr(definitions.resources)}
            texts["code location"] = dg.serialize_value(RepositorySnap.from_def(definitions.get_repository_def()))
        (state,) = sandbox.defs_folder_path.glob(".local_defs_state/*/state")
        texts["state"] = state.read_text()
    assert '"project": "closed"' in texts["state"]
    assert_clean(texts)


def test_values_of_a_resource_are_told_apart() -> None:
    """Two resources may give one name two values; a placeholder that stands for nothing is refused, not used."""
    first, second = PzResource(env={"TOLD": "one value"}), PzResource(env={"TOLD": "another value"})
    again = PzResource(env={"TOLD": "one value"})
    assert [each.variables["TOLD"] for each in (first, second, again)] == ["one value", "another value", "one value"]
    assert first.env == again.env
    assert "value" not in str(first.env | second.env).replace("hidden value of TOLD", "")
    with pytest.raises(PzDagsterError, match="PZ0701"):
        _ = PzResource(env={"TOLD": "hidden value of TOLD (9)"}).variables


def test_a_destination_that_a_variable_names_is_shown_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path below the project is shown from there, which must not leave the end of a value."""
    factory = ProjectFactory(tmp_path / "named", 'name: named\nversion: "1"\n')
    factory.write("in/orders.csv", "id\n1\n")
    factory.connections("files: { connector: localfiles, root: in }\nmart: { connector: duckdb, path: '${MART}' }\n")
    factory.pipeline(
        "p",
        "INSERT INTO {{ sink('mart', 't', strategy: 'replace') }}\nSELECT * FROM {{ source('files', 'orders', path: 'orders.csv') }}",
    )
    monkeypatch.setenv("MART", str(factory.directory / "s3cretname.duckdb"))
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        result = dg.materialize(
            build_pz_assets(PzProject(factory.directory)), instance=instance, resources={"pz": PzResource()}
        )
    shown = [
        str(event.materialization.metadata["dagster/uri"].value)
        for event in result.get_asset_materialization_events()
        if "dagster/uri" in event.materialization.metadata
    ]
    assert shown == ["${MART}: t"]
    assert b"s3cretname" not in b"".join(path.read_bytes() for path in (tmp_path / "history").rglob("*.db"))
