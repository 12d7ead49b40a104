"""Failures of the operating system, named by what the person has to touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from pz_engine.errors.exceptions import PzStateError
from pz_engine.errors.unexpected import diagnose
from pz_engine.state.local.keyed_file import KeyedFile
from pz_engine.state.scopes import WATERMARKS


@pytest.mark.parametrize("in_the_way", [".pz", ".pz/runs", ".pz/runs/r1"])
@pytest.mark.parametrize("kind", ["file", "dead link"])
def test_what_is_in_the_way_of_a_folder_is_named(tmp_path: Path, in_the_way: str, kind: str) -> None:
    """The nearest thing that exists and is no folder, not the path that was wanted."""
    obstacle = tmp_path / in_the_way
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        obstacle.write_text("")
    else:
        obstacle.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError) as caught:  # noqa: PT011 - which one is the point of the test
        (tmp_path / ".pz/runs/r1").mkdir(parents=True, exist_ok=True)
    problem = diagnose(caught.value)
    assert problem.code == "PZ0531"
    assert problem.message.startswith(f"'{obstacle}' is in the way")


def test_state_names_what_is_in_the_way_too(tmp_path: Path) -> None:
    """A file where the folder of state belongs is moved, not given permissions."""
    (tmp_path / "state").write_text("")
    with pytest.raises(PzStateError) as caught:
        KeyedFile(tmp_path / "state/watermarks.json", WATERMARKS, pytest.fail).get("a.b")
    assert caught.value.hint == f"move '{tmp_path}/state'; a folder is needed in its place"
