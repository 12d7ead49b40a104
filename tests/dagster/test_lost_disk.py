"""The example of a lost disk does what it says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "example_project" / "lost_disk.py"


def test_the_second_run_lands_only_february(capsys: pytest.CaptureFixture[str]) -> None:
    """January's rows are not read again although everything pz knew of them is gone."""
    assert runpy.run_path(str(SCRIPT))["main"]() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines if " rows, " in line] == ["27004", "24951"]
