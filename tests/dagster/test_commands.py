"""The `pz-dagster` command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner, Result

from pz_dagster import PzProject, doctor
from pz_dagster.commands import group
from pz_engine.app.scaffold import scaffold
from pz_engine.testing.project_factory import ProjectFactory


def call(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(each) for each in arguments])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(found))
    return found


def test_prepare_writes_a_snapshot_that_is_read(shop: ProjectFactory) -> None:
    """With the same variables as the definitions, nothing is compiled afterwards."""
    done = call("prepare", "--project", shop.directory, "--vars", '{"a": 1}')
    assert (done.exit_code, done.output) == (0, "wrote .pz/target/dagster.json\n")
    assert PzProject(shop.directory, vars={"a": 1}).snapshot_state == "fresh"
    assert PzProject(shop.directory).snapshot_state == "stale"


def test_prepare_names_every_problem_and_keeps_the_last_snapshot(shop: ProjectFactory) -> None:
    """Exit 2, all errors on stderr, nothing on stdout."""
    call("prepare", "--project", shop.directory)
    before = PzProject(shop.directory).snapshot_path.read_bytes()
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    shop.write("project.yml", 'name: shop\nversion: "1"\nretention: { keep_last: 0 }\n')
    done = call("prepare", "--project", shop.directory)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.count("error PZ") >= 2
    assert "PZ0123" in done.stderr
    assert "pipelines/configs/orders_clean.yml:3" in done.stderr
    assert PzProject(shop.directory).snapshot_path.read_bytes() == before


@pytest.mark.parametrize("variables", ["[1]", "{", '"a"'])
def test_a_command_line_that_cannot_be_meant_is_refused(shop: ProjectFactory, variables: str) -> None:
    """Variables that are no object, and a folder without a project."""
    done = call("prepare", "--project", shop.directory, "--vars", variables)
    assert (done.exit_code, "--vars" in done.stderr) == (2, True)
    elsewhere = call("prepare", "--project", shop.directory / "in")
    assert (elsewhere.exit_code, "no project.yml" in elsewhere.stderr) == (2, True)


def test_a_snapshot_that_cannot_be_written_is_no_trace(shop: ProjectFactory) -> None:
    """Exit 3 with the reason."""
    shop.write(".pz", "in the way")
    done = call("prepare", "--project", shop.directory)
    assert (done.exit_code, done.stderr.startswith("error: the snapshot cannot be written: ")) == (3, True)


def test_doctor_is_content_with_the_template(home: Path, tmp_path: Path) -> None:
    """The settings that ship are the recommended ones."""
    project = scaffold(tmp_path / "rides", "dagster").directory
    (home / "dagster.yaml").write_text((project / "dagster.yaml").read_text())
    call("prepare", "--project", project)
    done = call("doctor", "--project", project)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.output.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    assert "ok      pool pz_rides__out_weather_daily: limit 1" in lines


def test_doctor_names_what_is_missing_and_the_next_step(home: Path, shop: ProjectFactory) -> None:
    """An instance as it comes, a project without a snapshot; a pool with a limit of its own is fine."""
    with dg.DagsterInstance.get() as instance:
        instance.event_log_storage.set_concurrency_slots("warehouse", 1)
    done = call("doctor", "--project", shop.directory, "--pool", "warehouse", "--pool", "other")
    assert done.exit_code == 1
    text = done.output
    assert "advice  concurrency.pools.default_limit: not set" in text
    assert "ok      pool warehouse: limit 1" in text
    assert "advice  pool other: has no limit; run: dagster instance concurrency set other 1" in text
    assert "advice  snapshot: missing; run: pz-dagster prepare" in text
    assert "problem" not in text


def test_doctor_lists_problems_of_a_broken_project(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an instance, too, and in strict mode."""
    monkeypatch.setenv("PZ_DAGSTER_STRICT", "1")
    shop.sidecar("orders_clean", "checks:\n  - not_nul: [id]\n")
    done = call("doctor", "--project", shop.directory)
    assert done.exit_code == 1
    assert "problem project: error PZ0113" in done.output
    assert "advice  instance: DAGSTER_HOME is not set" in done.output


def test_doctor_finds_versions_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too old, and missing."""
    versions: dict[str, Any] = {"dagster": "1.12.0", "duckdb": None}
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, real(name)))
    found = {finding.subject: finding for finding in doctor.version_findings() if finding.status != "ok"}
    assert found["dagster"].status == found["duckdb"].status == "problem"
    assert "pip install 'dagster<2,>=1.13'" in str(found["dagster"])
    assert "is not installed; pip install 'duckdb" in str(found["duckdb"])


@pytest.mark.parametrize(
    ("core", "configuration", "advice"),
    [
        ("2.1.9", "storage: { postgres: { postgres_url: 'postgresql://u@h/d' } }", 1),
        ("2.1.9", "storage: { postgres: { postgres_url: 'postgresql+psycopg2://u@h/d' } }", 0),
        ("2.1.9", "storage: { sqlite: { base_dir: x } }", 0),
        ("2.0.40", "storage: { postgres: { postgres_url: 'postgresql://u@h/d' } }", 0),
    ],
)
def test_doctor_asks_for_the_driver_of_postgres(
    monkeypatch: pytest.MonkeyPatch, core: str, configuration: str, advice: int
) -> None:
    """Newer versions of SQLAlchemy take another driver unless the URL names one; nothing of the file is shown."""
    versions = {"sqlalchemy": core, "dagster-postgres": "0.29.27"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    found = [str(finding) for finding in doctor.storage_findings(configuration)]
    assert len(found) == advice
    assert all("postgresql+psycopg2://" in text and "u@h" not in text for text in found)


def test_an_instance_that_cannot_be_opened_shows_nothing_of_itself(
    home: Path, shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong password stays in its file."""
    (home / "dagster.yaml").write_text("storage: { postgres: { password: s3cr3t, nonsense: 1 } }\n")
    done = call("doctor", "--project", shop.directory)
    assert done.exit_code == 3
    assert "see dagster.yaml" in done.stderr
    assert "s3cr3t" not in done.output


def test_commands_and_states_hold_no_secret(shop: ProjectFactory, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of `${NAME}` are in neither output, nor in the snapshot that `prepare` and the component write."""
    secret = "s3cr3t pa'ss@word"
    monkeypatch.setenv("LAKE_PASSWORD", secret)
    text = (shop.directory / "connections.yml").read_text()
    shop.write("connections.yml", text.replace("path: mart.duckdb", "path: ${LAKE_PASSWORD}/mart.duckdb"))
    shop.pipeline("asks", "SELECT '{{ var('word') }}' AS word, '{{ nothing }}' AS x")
    outputs = [call(name, "--project", shop.directory).output for name in ("prepare", "doctor")]
    assert "PZ0104" in outputs[0]
    (shop.directory / "pipelines/asks.sql").unlink()
    outputs += [call(name, "--project", shop.directory).output for name in ("prepare", "doctor")]
    assert "wrote" in outputs[2]
    snapshot = PzProject(shop.directory).snapshot_path.read_text()
    assert json.loads(snapshot)["connections"]["mart"] == {"connector": "duckdb", "line": 15}
    for shown in (*outputs, snapshot):
        assert "s3cr3t" not in shown
        assert "/mart.duckdb" not in shown
