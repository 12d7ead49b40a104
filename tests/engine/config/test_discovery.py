"""Finding a project's files: what counts, what is refused, and that nothing is silently left out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pz_engine.config.file_text import MAX_SQL_BYTES, MAX_YAML_BYTES
from pz_engine.config.loader import load_project
from pz_engine.errors.exceptions import PzValidationError

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="uses names and files that only Linux has")
UNREADABLE = "/proc/self/mem"
"""A regular file that nobody, root included, can read from its start."""


def problem_of(project):
    (problem,) = project.problems()
    assert problem.hint
    return problem


def test_sidecars_are_read_from_the_top_of_their_folder_only(project):
    """A file in a sub-folder of configs is nothing."""
    project.sql("one", "select 1").write("pipelines/configs/sub/x.yml", "not: a sidecar\n")
    assert dict(project.load().sidecars) == {}


def test_other_files_are_ignored(project):
    """profiles.yml, notes and files with another ending are none of pz's business."""
    project.write("profiles.yml", "[").write("pipelines/notes.txt", "x").write("pipelines/x.SQL", "x")
    project.write("pipelines/configs/readme.md", "x").write("pipelines/config/deep.sql", "select 1")
    assert [pipeline.name for pipeline in project.load().pipelines] == ["deep"]


def test_a_project_file_with_the_other_ending_is_named(project):
    """Whoever wrote project.yaml is told to rename it."""
    (project.directory / "project.yml").rename(project.directory / "project.yaml")
    assert problem_of(project).hint == "rename project.yaml to project.yml"


def test_the_retired_folder_hint_is_a_whole_block(project):
    """The block can be pasted, with a legal name and the right side."""
    project.write("sinks/01-lake.yml", "x: 1")
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0346", "sinks/01-lake.yml")
    assert "\nlake_01:\n  connector: <name>\n  entities:\n    <entity>:\n      write: {}" in problem.hint


@pytest.mark.parametrize("name", ["project.yml", "connections.yml", "pipelines/one.sql", "pipelines/configs/one.yml"])
class TestEachKindOfFile:
    """The same mistakes, in every kind of file."""

    def write(self, project, name, content):
        project.sql("one", "select 1")
        path = project.directory / name
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)

    @pytest.mark.parametrize(
        ("content", "line", "words"),
        [
            ("a: 1\nb: 2\n".encode("utf-16"), 1, "UTF-16"),
            ("a: 1\nb: 2\n".encode("utf-16-le"), 1, "UTF-16"),
            ("a: 1\nb: 2\n".encode("utf-16-be"), 1, "UTF-16"),
            (b"a: 1\nb: caf\xe9\n", 2, "not UTF-8"),
            (b"a: 1\nb: \x00\n", 2, "NUL"),
            (b"\x7fELF\x02\x01\x01\x00\x00", 1, "NUL"),
        ],
    )
    def test_bytes_that_are_no_text_are_refused_with_their_line(self, project, name, content, line, words):
        """The encoding is named, and the hint says which one to use."""
        self.write(project, name, content)
        problem = problem_of(project)
        assert (problem.code, problem.file, problem.line) == ("PZ0101", name, line)
        assert words in problem.message
        assert problem.hint == "save it as UTF-8"

    def test_a_file_above_the_limit_is_refused(self, project, name):
        """Not one byte more than the limit is read."""
        limit = MAX_SQL_BYTES if name.endswith(".sql") else MAX_YAML_BYTES
        self.write(project, name, b"#" * (limit + 1))
        problem = problem_of(project)
        assert (problem.code, problem.file) == ("PZ0101", name)
        assert f"{limit // 1024**2} MiB" in problem.message

    @pytest.mark.parametrize("kind", ["pipe", "folder", "dangling", "circle", "device", "unreadable"])
    def test_what_is_no_readable_file_is_refused_and_never_waited_for(self, project, name, kind):
        """A pipe, a folder, a device or a link to nothing is named; nothing is taken for absent."""
        self.write(project, name, b"")
        path = project.directory / name
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            target = {"dangling": "nowhere", "circle": path.name, "device": "/dev/zero", "unreadable": UNREADABLE}[kind]
            if target.startswith("/") and not Path(target).exists():
                pytest.skip(f"there is no {target}")
            path.symlink_to(target)
        problem = problem_of(project)
        assert (problem.code, problem.file) == ("PZ0101", name)

    def test_a_file_of_no_bytes_and_a_mark_are_what_they_say(self, project, name):
        """Empty files and a UTF-8 mark are read like any other text."""
        self.write(project, name, b"\xef\xbb\xbf")
        if name == "connections.yml":
            assert dict(project.load().connections) == {}
        elif name.endswith(".sql"):
            assert project.load().pipelines[0].text == ""
        else:
            assert {code for code, _ in project.found()} <= {"PZ0101", "PZ0111"}


@pytest.mark.parametrize("name", ["pipelines", "pipelines/configs"])
@pytest.mark.parametrize("kind", ["file", "dangling", "circle"])
def test_a_folder_that_is_none_is_refused(project, name, kind):
    """A file or a broken link in the place of a folder hides no pipelines."""
    path = project.directory / name
    path.parent.mkdir(exist_ok=True)
    if kind == "file":
        path.write_text("x")
    else:
        path.symlink_to("nowhere" if kind == "dangling" else path.name)
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0101", name)


def test_a_folder_nobody_may_list_is_refused(project, monkeypatch):
    """Its pipelines are not silently left out."""
    project.sql("closed/one", "select 1")
    real = Path.iterdir

    def refuse(path):
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0101", "pipelines/closed")
    assert "Permission denied" in problem.message


@pytest.mark.parametrize("target", ["..", ".", "/", "../deep"])
def test_a_link_back_up_is_refused_once(project, target):
    """A circle of folders ends at its first step and is named."""
    project.sql("deep/one", "select 1")
    (project.directory / "pipelines" / "deep" / "loop").symlink_to(target)
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0101", "pipelines/deep/loop")


@pytest.mark.parametrize("target", ["/nowhere/at/all", "common"])
def test_a_link_to_nothing_is_refused(project, target):
    """A folder of pipelines that is not mounted is not silently left out; an editor's lock is no folder."""
    (project.directory / "pipelines").mkdir()
    (project.directory / "pipelines" / "common").symlink_to(target)
    (project.directory / "pipelines" / ".#notes.txt").symlink_to("me@host.1")
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0101", "pipelines/common")


def test_a_link_to_another_folder_is_followed(project, tmp_path):
    """Pipelines may live elsewhere."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "one.sql").write_text("select 1")
    (project.directory / "pipelines").mkdir()
    (project.directory / "pipelines" / "common").symlink_to(shared)
    assert [pipeline.file for pipeline in project.load().pipelines] == ["pipelines/common/one.sql"]


def test_very_deep_folders_are_walked(project):
    """Hundreds of folders inside each other are no stack of calls."""
    project.sql("d/" * 600 + "one", "select 1")
    assert [pipeline.name for pipeline in project.load().pipelines] == ["one"]


@pytest.mark.parametrize(
    ("name", "shown", "rename"),
    [
        ("my pipe.sql", "my pipe.sql", "my_pipe.sql"),
        ("😀.sql", "😀.sql", "_.sql"),
        ("a\nb.sql", "a\\nb.sql", "a_b.sql"),
        ("2024\x1b[2J.sql", "2024\\x1b[2J.sql", "2J_2024.sql"),
        (".sql", ".sql", "unnamed.sql"),
        (b"caf\xe9.sql", "caf\\xe9.sql", "caf_.sql"),
    ],
)
@linux_only
def test_names_that_are_no_identifiers_are_shown_on_one_line(project, name, shown, rename):
    """Whatever stands in a file's name, the message stays printable and proposes a legal one."""
    (project.directory / "pipelines").mkdir()
    path = os.path.join(os.fsencode(project.directory / "pipelines"), os.fsencode(name))  # noqa: PTH118 - bytes
    with open(path, "w"):  # noqa: PTH123
        pass
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0136", f"pipelines/{shown}")
    assert problem.hint == f"rename it to {rename}"
    assert str(problem).isprintable()


@pytest.mark.parametrize(("folder", "shown"), [("a\nb", "a\\nb"), (b"caf\xe9", "caf\\xe9")])
@linux_only
def test_folders_that_cannot_be_printed_are_refused(project, folder, shown):
    """Their names would go into every artifact."""
    (project.directory / "pipelines").mkdir()
    path = os.path.join(os.fsencode(project.directory / "pipelines"), os.fsencode(folder))  # noqa: PTH118 - bytes
    os.mkdir(path)  # noqa: PTH102
    problem = problem_of(project)
    assert (problem.code, problem.file) == ("PZ0136", f"pipelines/{shown}")


def test_folders_with_blanks_and_signs_are_fine(project):
    """A folder is no part of the pipeline's name."""
    project.sql("my folder/😀/one", "select 1")
    assert [pipeline.file for pipeline in project.load().pipelines] == ["pipelines/my folder/😀/one.sql"]


@linux_only
def test_sidecars_may_be_called_anything(project):
    """A name with a line break is shown escaped, and its content counts."""
    project.sql("one", "select 1").write("pipelines/configs/a\nb.yml", "pipeline: one\nbogus: 1\n")
    problem = problem_of(project)
    assert (problem.code, problem.file, problem.line) == ("PZ0101", "pipelines/configs/a\\nb.yml", 2)


@linux_only
def test_a_project_folder_that_is_no_text_is_refused(tmp_path):
    """Its path would reach DuckDB and every artifact."""
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    directory.mkdir()
    (directory / "project.yml").write_text("name: demo\nversion: '1'\n")
    with pytest.raises(PzValidationError) as caught:
        load_project(directory, env={})
    (problem,) = caught.value.errors
    assert (problem.code, problem.file) == ("PZ0101", None)
    assert "caf\\xe9" in problem.message


def test_a_project_folder_that_is_not_there_is_one_problem(tmp_path):
    """A wrong --project says that there is no project.yml."""
    with pytest.raises(PzValidationError) as caught:
        load_project(tmp_path / "nowhere", env={})
    assert [(problem.code, problem.file) for problem in caught.value.errors] == [("PZ0101", "project.yml")]
