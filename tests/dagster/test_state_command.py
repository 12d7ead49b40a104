"""`pz-dagster state`: the project's own state beside its copy, and the two made to agree by hand."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from pz_dagster.reconciliation import Decision
from pz_dagster.state_report import state_lines
from pz_dagster.state_restore import Comparison
from pz_engine.testing.project_factory import ProjectFactory
from tests.dagster.conftest import Workbench
from tests.dagster.test_commands import call, home  # noqa: F401 - a fixture

VALUE = "2026-01-02T00:00:00.000000"


@pytest.fixture
def ran(shop: ProjectFactory, home: Path) -> ProjectFactory:  # noqa: F811 - the fixture
    """A project whose feed ran once, with its copy in the instance."""
    with dg.DagsterInstance.get() as instance:
        Workbench(shop, instance).materialize()
    return shop


def test_a_state_in_step_is_shown_beside_its_copy(ran: ProjectFactory) -> None:
    """One line for each position; doctor agrees."""
    done = call("state", "--project", ran.directory)
    assert (done.exit_code, done.stderr) == (0, "")
    header, line = done.output.splitlines()
    assert header.split() == ["position", "stored", "copied", "reconcile"]
    assert line.startswith("watermarks/erp.events ")
    assert line.count(VALUE) == 2
    assert line.endswith("in step")
    assert "ok      state copy: in step, 1 position(s)" in call("doctor", "--project", ran.directory).output


def test_a_lost_state_is_restored_by_hand(ran: ProjectFactory) -> None:
    """Shown first with exit 1, restored on request, and then in step."""
    stored = ran.directory / ".pz/state/watermarks.json"
    before = stored.read_bytes()
    stored.unlink()
    shown = call("state", "--project", ran.directory)
    assert (shown.exit_code, stored.exists()) == (1, False)
    assert shown.output.splitlines()[1].endswith("restore it")
    assert "advice  state copy: differs for watermarks/erp.events" in call("doctor", "--project", ran.directory).output
    done = call("state", "--project", ran.directory, "--reconcile")
    assert done.exit_code == 0
    assert "restored watermarks/erp.events" in done.output
    assert "PZ0705" in done.output
    assert stored.read_bytes() == before
    assert "nothing to do" in call("state", "--project", ran.directory, "--reconcile").output


def test_another_prefix_has_no_copy_yet(ran: ProjectFactory) -> None:
    """Reconciling makes one there."""
    shown = call("state", "--project", ran.directory, "--prefix", "eu/north")
    assert shown.output.splitlines()[1].endswith("copy it")
    done = call("state", "--project", ran.directory, "--prefix", "eu/north", "--reconcile")
    assert "copied watermarks/erp.events" in done.output
    assert call("state", "--project", ran.directory, "--prefix", "eu/north").exit_code == 0


def test_without_an_instance_there_is_nothing_to_compare(shop: ProjectFactory) -> None:
    """Exit 2 names the variable."""
    done = call("state", "--project", shop.directory)
    assert (done.exit_code, "DAGSTER_HOME is not set" in done.stderr) == (2, True)


def test_nothing_stored_is_said(shop: ProjectFactory, home: Path) -> None:  # noqa: F811 - the fixture
    """No empty table."""
    assert call("state", "--project", shop.directory).output == "nothing is stored or copied\n"


def test_a_token_is_never_shown() -> None:
    """Only which run left it."""
    entry = {"token": "s3cr3t", "runId": "r1"}
    text = "\n".join(state_lines([Comparison("sync-state/api.orders", entry, (), Decision("copy"))]))
    assert "a token of run r1" in text
    assert "s3cr3t" not in text
