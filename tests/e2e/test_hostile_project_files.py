"""Files no person would write, through the `pz` command: a code, a file, a next step, exit 2, nothing written, in time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pz_engine.testing.project_factory import ProjectFactory

LIMIT_SECONDS = 20.0
"""Far above what each case takes, so that a busy machine fails nothing; a pipe or a bomb would take for ever."""

PROJECT = b"name: demo\nversion: '1'\n"
BOMB = b"vars:\n" + b"".join(
    b"  %c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 10) if name > ord("a") else b"x, x, x")
    for name in range(ord("a"), ord("l"))
)
LINE = re.compile(r"error (PZ\d{4}): .+ \((?P<file>.+?)(:(?P<line>\d+))?\) — hint: .+")

Damage = Callable[[Path], None]


def content(name: str, data: bytes) -> Damage:
    def write(project: Path) -> None:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(data)

    return write


def link(name: str, target: str) -> Damage:
    def make(project: Path) -> None:
        (project / name).unlink(missing_ok=True)
        (project / name).symlink_to(target)

    return make


def pipe(name: str) -> Damage:
    def make(project: Path) -> None:
        (project / name).unlink(missing_ok=True)
        os.mkfifo(project / name)

    return make


def folder(name: str) -> Damage:
    return lambda project: (project / name).mkdir(parents=True)


def raw_name(name: bytes) -> Damage:
    def make(project: Path) -> None:
        with open(os.path.join(os.fsencode(project / "pipelines"), name), "wb"):  # noqa: PTH118, PTH123 - bytes
            pass

    return make


def million_lines(name: str, line: bytes) -> Damage:
    return content(name, line * (50 * 1024 * 1024 // len(line)))


CASES = [
    ("empty project", content("project.yml", b""), "PZ0101", "project.yml", None),
    ("binary project", content("project.yml", bytes(range(256)) * 40), "PZ0101", "project.yml", 1),
    ("UTF-16 project", content("project.yml", PROJECT.decode().encode("utf-16")), "PZ0101", "project.yml", 1),
    ("UTF-16 pipeline", content("pipelines/a.sql", "select 1".encode("utf-16-le")), "PZ0101", "pipelines/a.sql", 1),
    ("Latin-1 connections", content("connections.yml", b"# a\n# caf\xe9\n"), "PZ0101", "connections.yml", 2),
    ("50 MB of YAML", million_lines("connections.yml", b"c: {connector: x}\n"), "PZ0101", "connections.yml", None),
    ("50 MB of SQL", million_lines("pipelines/a.sql", b"select 1 union all\n"), "PZ0101", "pipelines/a.sql", None),
    ("50 MB sidecar", million_lines("pipelines/configs/a.yml", b"# a\n"), "PZ0101", "pipelines/configs/a.yml", None),
    ("100k brackets", content("connections.yml", b"c: " + b"[" * 100_000), "PZ0101", "connections.yml", 1),
    ("100k dashes", content("connections.yml", b"- " * 100_000), "PZ0101", "connections.yml", 1),
    ("alias bomb", content("project.yml", PROJECT + BOMB), "PZ0101", "project.yml", 10),
    ("own anchor", content("project.yml", PROJECT + b"vars: &v\n  a: *v\n"), "PZ0101", "project.yml", 4),
    ("two documents", content("project.yml", PROJECT + b"---\n" + PROJECT), "PZ0101", "project.yml", 3),
    ("link up", link("pipelines/loop", ".."), "PZ0101", "pipelines/loop", None),
    ("link to itself", link("pipelines/loop.sql", "loop.sql"), "PZ0101", "pipelines/loop.sql", None),
    ("dangling project", link("project.yml", "nowhere"), "PZ0101", "project.yml", None),
    ("endless device", link("connections.yml", "/dev/zero"), "PZ0101", "connections.yml", None),
    ("folder like a pipeline", folder("pipelines/x.sql"), "PZ0101", "pipelines/x.sql", None),
    ("pipe as project", pipe("project.yml"), "PZ0101", "project.yml", None),
    ("pipe as pipeline", pipe("pipelines/a.sql"), "PZ0101", "pipelines/a.sql", None),
    ("blank in a name", content("pipelines/my pipe.sql", b"select 1"), "PZ0136", "pipelines/my pipe.sql", None),
    ("emoji as a name", content("pipelines/\U0001f600.sql", b"select 1"), "PZ0136", "pipelines/\U0001f600.sql", None),
    ("line break in a name", content("pipelines/a\nb.sql", b"select 1"), "PZ0136", "pipelines/a\\nb.sql", None),
    ("name that is not UTF-8", raw_name(b"caf\xe9.sql"), "PZ0136", "pipelines/caf\\xe9.sql", None),
    ("NUL in SQL", content("pipelines/a.sql", b"select 1\n\x00; drop"), "PZ0101", "pipelines/a.sql", 2),
    ("NUL in YAML", content("connections.yml", b'c:\n  connector: "local\\0files"\n'), "PZ0101", "connections.yml", 2),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one pipeline."""
    directory = tmp_path / "demo"
    content("project.yml", PROJECT)(directory)
    content("pipelines/one.sql", b"select 1 as id")(directory)
    return directory


def pz(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pz_engine", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def names_in(directory: Path) -> list[bytes]:
    return sorted(name for _, folders, files in os.walk(os.fsencode(directory)) for name in (*folders, *files))


@pytest.mark.parametrize(
    ("damage", "code", "file", "line"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_ends_in_a_code_a_place_and_a_next_step(
    project: Path, damage: Damage, code: str, file: str, line: int | None
) -> None:
    """Exactly one line a problem, exit 2, and the folder is as it was."""
    damage(project)
    before = names_in(project)
    began = time.monotonic()
    done = pz("validate", "--project", str(project))
    assert time.monotonic() - began < LIMIT_SECONDS
    assert (done.returncode, done.stdout) == (2, "")
    lines = [LINE.fullmatch(text) for text in done.stderr.splitlines()]
    assert all(lines), done.stderr
    found = [(match[1], match["file"], match["line"] and int(match["line"])) for match in lines if match]
    assert (code, file, line) in found
    assert {place for _, place, _ in found} == {file}
    assert names_in(project) == before


@pytest.mark.parametrize("verb", ["compile", "plan", "ls", "run", "test", "state show"])
@pytest.mark.parametrize("name", ["project.yml", "connections.yml"])
def test_no_verb_waits_for_a_pipe(project: Path, verb: str, name: str) -> None:
    """Every verb that reads the file refuses it at once and leaves nothing behind."""
    pipe(name)(project)
    before = names_in(project)
    done = pz(*verb.split(), "--project", str(project))
    is_read = verb != "state show" or name == "project.yml"
    assert done.returncode == (2 if is_read else 0)
    assert ("PZ0101" in done.stderr) == is_read
    assert names_in(project) == before or not is_read


def test_marks_and_empty_files_are_no_problem(project: Path) -> None:
    """A UTF-8 mark, an empty connections.yml and a folder with odd signs load like anything else."""
    content("project.yml", b"\xef\xbb\xbf" + PROJECT)(project)
    content("connections.yml", b"")(project)
    content("pipelines/my folder \U0001f600/two.sql", b"\xef\xbb\xbfselect 2 as id")(project)
    done = pz("validate", "--project", str(project))
    assert done.returncode == 0, done.stderr
    assert "2 pipelines" in done.stdout


def test_three_hostile_files_are_three_problems(project: Path) -> None:
    """One hostile file hides no other."""
    pipe("connections.yml")(project)
    content("project.yml", b"name: \xff\n")(project)
    content("pipelines/configs/a.yml", b"[" * 5000)(project)
    done = pz("validate", "--project", str(project))
    assert done.returncode == 2
    places = [match["file"] for match in map(LINE.fullmatch, done.stderr.splitlines()) if match]
    assert places == ["connections.yml", "pipelines/configs/a.yml", "project.yml"]


def test_json_stays_json_whatever_the_names(project: Path) -> None:
    """One object on standard output, with the escaped names in it."""
    raw_name(b"caf\xe9.sql")(project)
    content("pipelines/a\nb.sql", b"select 1")(project)
    content("connections.yml", b'"\\e[2J": {connector: x}\n')(project)
    done = pz("validate", "--project", str(project), "--log-format", "json")
    assert done.returncode == 2
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert not found["ok"]
    assert [error["file"] for error in found["errors"]] == [
        "connections.yml", "pipelines/a\\nb.sql", "pipelines/caf\\xe9.sql",
    ]  # fmt: skip
    assert "\x1b" not in line + done.stderr


@pytest.mark.parametrize("name", ["what?", "all*"])
def test_project_in_a_folder_that_reads_like_a_pattern(tmp_path: Path, name: str) -> None:
    """Its files could be those of another folder, so it is refused before anything is read or written."""
    (tmp_path / "allies").mkdir()
    project = ProjectFactory(tmp_path / name)
    project.pipeline("p", "SELECT 1 AS one")
    done = subprocess.run(
        [sys.executable, "-m", "pz_engine", "run", "--project", str(project.directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "PZ0101" in done.stderr) == (2, True), done.stdout + done.stderr
    assert not (project.directory / ".pz").exists()
