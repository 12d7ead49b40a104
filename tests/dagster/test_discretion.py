"""What the adapter itself holds back: the last guard before Dagster, whatever the engine has removed already."""

import io
import json
import sys
from typing import Any

import pytest

from pz_dagster import PzProject
from pz_dagster.compute_log import ComputeLog
from pz_dagster.discretion import Discretion
from pz_engine import Diagnostic
from pz_engine.events import types
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.test_event_mapping import event

SECRET = "s3cr3t pa'ss@word/%25"
FORMS = {
    "as it is": SECRET,
    "in a path of a URL": "s3cr3t%20pa%27ss%40word/%2525",
    "in a URL": "s3cr3t%20pa%27ss%40word%2F%2525",
    "in a query": "s3cr3t+pa%27ss%40word%2F%2525",
    "in SQL": "s3cr3t pa''ss@word/%25",
}


def discretion(shop: ProjectFactory, **options: Any) -> Discretion:
    return Discretion.of(
        PzProject(shop.directory).snapshot,
        shop.directory,
        shop.directory / ".pz",
        env={"PASSWORD": SECRET, "TINY": "abc", "UNNAMED": "another secret"},
        shows_samples=False,
        **{"is_full": False, **options},
    )


@pytest.mark.parametrize("file", ["connections.yml", "project.yml"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_full", [False, True])
def test_values_are_shown_by_their_names(file: str, form: str, is_full: bool, shop: ProjectFactory) -> None:
    """In every spelling, whichever file names the variable, and in full messages too."""
    path = shop.directory / file
    path.write_text(f"{path.read_text()}# ${{PASSWORD}} ${{TINY}}\n")
    found = discretion(shop, is_full=is_full)
    for shown in (found.text(f"refused: {FORMS[form]}!"), found.relative(f"refused: {FORMS[form]}!")):
        assert "${PASSWORD}" in shown
        assert "pa" not in shown
    assert found.relative("abc, another secret") == "abc, another secret"


def test_a_summary_cannot_cut_a_value_in_two(shop: ProjectFactory) -> None:
    """What removes quoted row values from a message would leave the rest of a secret that has a quote."""
    shop.write("connections.yml", (shop.directory / "connections.yml").read_text() + "# ${PASSWORD}\n")
    shown = discretion(shop).text(f"cannot open '{SECRET}' here")
    assert not [part for part in ("s3cr3t", "ss@word") if part in shown]


def test_hints_lose_their_paths_too(shop: ProjectFactory) -> None:
    """A problem is shown from the project's directory, its next step as well."""
    problem = Diagnostic("PZ0500", f"no {shop.directory}/a.csv", hint=f"make {shop.directory}/a.csv or /srv/x/b.csv")
    shown = discretion(shop).diagnostic(problem)
    assert (shown.message, shown.hint) == ("no a.csv", "make a.csv or …/b.csv")


def captured(monkeypatch: pytest.MonkeyPatch) -> dict[str, io.BytesIO]:
    """Put buffered streams in place of the step's output."""
    below = {}
    for name in ("stdout", "stderr"):
        below[name] = io.BytesIO()
        monkeypatch.setattr(sys, name, io.TextIOWrapper(below[name], encoding="utf-8", write_through=False))
    return below


def test_captured_output_is_discreet_and_written_at_once(shop: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a connector says and what the engine notes, without values; a worker that is killed then has left its lines."""
    shop.write("connections.yml", (shop.directory / "connections.yml").read_text() + "# ${PASSWORD}\n")
    log = ComputeLog(discretion(shop))
    with monkeypatch.context() as patch:
        below = captured(patch)
        said = event(types.ConnectorLog, connection="erp", level="warning", message=f"login {SECRET}")
        log.event(said)
        log.note("2 source load(s) are reused")
        texts = {name: stream.getvalue().decode() for name, stream in below.items()}
    assert json.loads(texts["stdout"])["message"] == "login ${PASSWORD}"
    assert texts["stderr"].splitlines()[-1] == "note: 2 source load(s) are reused"
    assert "login" in texts["stderr"]
    assert not [part for part in ("s3cr3t", "ss@word") if part in str(texts)]
