"""`PZ_STATE_DIR` on the command line: no verb reads or changes what another project keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.app.scaffold import scaffold

VERBS = (
    "run --all",
    "test",
    "retry",
    "validate --connect",
    "compile --lineage",
    "plan",
    "runs",
    "history",
    "history 20260101T000000000Z-0000",
    "state show",
    "state clear files.x --yes",
    "clean --keep-last 0 --purge",
    "schema accept",
)


@pytest.fixture
def kept(sample: Path, pz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A moved folder with one run of the sample, named by the variable."""
    monkeypatch.setenv("PZ_STATE_DIR", str(tmp_path / "kept"))
    assert pz("run", "--all", "--project", sample).code == 0
    return tmp_path / "kept"


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_refuses_another_projects_folder(verb: str, kept: Path, pz: Call, tmp_path: Path) -> None:
    """Exit 2 with `PZ0518`, and not a byte is written, there or in the project."""
    other = scaffold(tmp_path / "other", "minimal").directory
    before = contents(kept), contents(other)
    called = pz(*verb.split(), "--project", other)
    assert contents(kept) == before[0]
    assert contents(other) == before[1]
    assert (called.code, "PZ0518" in called.out + called.err) == (2, True)
