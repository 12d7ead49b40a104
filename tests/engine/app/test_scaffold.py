"""Templates are complete projects, and a copy never overwrites anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pz_engine.app.scaffold import CATALOGUE, project_name, scaffold, template_files
from pz_engine.errors.exceptions import PzConfigError

TEMPLATES = Path(__file__).parents[3] / "pz_engine" / "templates"


def files_of(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


def test_catalogue_and_folder_agree() -> None:
    """Every folder is in the catalogue and every entry has its folder."""
    assert {path.name for path in TEMPLATES.iterdir() if path.is_dir()} == {template.id for template in CATALOGUE}


@pytest.mark.parametrize("template_id", [template.id for template in CATALOGUE])
def test_copy_holds_every_file_and_its_own_name(tmp_path: Path, template_id: str) -> None:
    """All files arrive, the ignore file under its real name, and only the name differs."""
    made = scaffold(tmp_path / "my-shop", template_id)
    assert files_of(made.directory) == set(made.files) == set(template_files(template_id))
    assert ".gitignore" in made.files
    assert made.project_name == "my_shop"
    project = (made.directory / "project.yml").read_text(encoding="utf-8")
    assert "\nname: my_shop\n" in f"\n{project}"
    source = (TEMPLATES / template_id / "project.yml").read_text(encoding="utf-8")
    assert project.replace("name: my_shop", f"name: {template_id}") == source


def test_dagster_template_is_the_sample_and_definitions() -> None:
    """The two stay one project: what they share is the same, byte for byte."""
    own = {"README.md", "project.yml", "definitions.py", "workspace.yaml", "dagster.yaml", "gitignore"}
    shared = files_of(TEMPLATES / "sample") - own
    assert files_of(TEMPLATES / "dagster") == shared | own
    for name in shared:
        assert (TEMPLATES / "sample" / name).read_bytes() == (TEMPLATES / "dagster" / name).read_bytes()


def test_empty_folder_is_taken_and_anything_else_is_not(tmp_path: Path) -> None:
    """An empty folder will do; a file or a folder with anything in it is refused and left alone."""
    empty = tmp_path / "empty"
    empty.mkdir()
    scaffold(empty)
    file = tmp_path / "file"
    file.write_text("x", encoding="utf-8")
    full = tmp_path / "full"
    full.mkdir()
    (full / ".hidden").touch()
    for target in (empty, file, full):
        before = files_of(tmp_path)
        with pytest.raises(PzConfigError) as caught:
            scaffold(target)
        assert caught.value.diagnostic.code == "PZ0130"
        assert files_of(tmp_path) == before


def test_unknown_template_lists_the_known(tmp_path: Path) -> None:
    """A misspelled id is refused with the list and a near miss, and makes nothing."""
    with pytest.raises(PzConfigError) as caught:
        scaffold(tmp_path / "x", "smaple")
    problem = caught.value.diagnostic
    assert problem.code == "PZ0131"
    assert "minimal, sample, dagster" in problem.message
    assert problem.hint == "did you mean 'sample'?"
    assert not (tmp_path / "x").exists()


def test_failed_copy_takes_its_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that cannot be finished leaves nothing behind."""
    write = Path.write_bytes

    def fail_late(path: Path, content: bytes) -> int:
        if path.name == "project.yml":
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", fail_late)
    with pytest.raises(OSError, match="No space"):
        scaffold(tmp_path / "deep" / "shop", "sample")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("shop", "shop"),
        ("My  Shop!", "my_shop_"),
        ("2026", "p_2026"),
        ("_x", "p_x"),
        ("Ärger", "p_rger"),
        ("---", "p_"),
    ],
)
def test_names_are_folded(folder: str, name: str) -> None:
    """Lower case, one underscore per run of anything else, a letter first."""
    assert project_name(folder) == name


@given(st.text(min_size=1, max_size=20))
def test_every_folder_gives_a_legal_name(folder: str) -> None:
    """Whatever the folder is called, the name begins with a letter and holds nothing odd."""
    name = project_name(folder)
    assert name[0] in "abcdefghijklmnopqrstuvwxyz"
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert "__" not in name
    assert project_name(name) == name
