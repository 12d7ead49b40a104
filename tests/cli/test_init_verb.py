"""`pz init` says what it made and what to type next."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_calls import Call

from pz_engine.app.scaffold import CATALOGUE


def test_new_project_says_where_it_is_and_what_comes_next(
    pz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closing lines can be typed as they stand."""
    monkeypatch.chdir(tmp_path)
    called = pz("init", "shop", "--template", "sample")
    assert (called.code, called.err) == (0, "")
    assert called.out.splitlines()[0].startswith("created 'sample' project 'shop' in shop (")
    assert called.out.splitlines()[1] == "next: cd shop && pz plan && pz run --all"
    assert (tmp_path / "shop" / "project.yml").exists()


def test_current_folder_needs_no_cd(pz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dot is the current folder, whose name becomes the project's, with a warning when it had to change."""
    folder = tmp_path / "My Shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    called = pz("init", ".")
    assert called.code == 0
    assert called.out.splitlines()[-1] == "next: pz validate"
    assert called.err.startswith("warning: the project is called 'my_shop'")
    assert "name: my_shop" in (folder / "project.yml").read_text(encoding="utf-8")


def test_list_names_every_template_and_its_needs(pz: Call) -> None:
    """The list has one row per template, with what it needs to run."""
    called = pz("init", "--list-templates")
    rows = called.out.splitlines()[1:]
    assert [row.split()[0] for row in rows] == [template.id for template in CATALOGUE]
    assert all(row.endswith(template.needs) for row, template in zip(rows, CATALOGUE, strict=True))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["shop", "-t", "bogus"], "PZ0131"),
        (["full"], "PZ0130"),
        (["shop", "--list-templates"], "PZ0132"),
        (["--list-templates", "-t", "sample"], "PZ0132"),
    ],
)
def test_refusals_carry_their_code(
    pz: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: str
) -> None:
    """What cannot be done is refused with exit code 2 before anything is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    called = pz("init", *arguments)
    assert called.code == 2
    assert called.err.startswith(f"error {code}: ")
    assert not (tmp_path / "shop").exists()
