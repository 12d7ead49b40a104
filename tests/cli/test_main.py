"""The command starts light, and every way it can end has its exit code."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest
from command_calls import Call

from pz_engine import __version__
from pz_engine.cli.main import VERBS, VerbGroup, group

HEAVY = ("duckdb", "pyarrow", "pydantic", "sqlglot", "pendulum", "jinja2", "yaml", "dagster", "rich", "jsonschema")


def _cpu(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_imports_nothing_heavy() -> None:
    """Asking for help loads none of the libraries that take long."""
    code = f"""
import sys
from pz_engine.cli.main import run
from pz_engine.cli.render.terminal import Terminal
assert run(["--help"], Terminal(sys.stdout, sys.stderr, {{}})) == 0
loaded = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(f"loaded: {{loaded}}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_costs_little_over_bare_python() -> None:
    """Help costs at most 150 ms of processor time more than an empty script, best of five."""
    bare = min(_cpu("pass") for _ in range(5))
    call = "import sys; sys.argv = ['pz', '--help']; from pz_engine.cli.main import main; main()"
    helped = min(_cpu(call) for _ in range(5))
    assert helped - bare < 0.150


def test_verbs_and_summaries_agree_with_their_modules() -> None:
    """The table of verbs says what each verb says of itself, and every verb has its module."""
    assert isinstance(group, VerbGroup)
    context = click.Context(group)
    modules = {path.stem for path in (Path(__file__).parents[2] / "pz_engine/cli/verbs").glob("[!_]*.py")}
    assert modules == set(VERBS)
    for name, summary in VERBS.items():
        command = group.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(200).rstrip(".") == summary.rstrip(".")
        assert command.name == name


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "there is no verb 'bogus'"),
        (["vaildate"], "did you mean 'validate'?"),
        (["run", "--bogus"], "--bogus"),
        (["validate", "extra"], "extra"),
        (["run", "--log-format", "xml"], "xml"),
        (["run", "-q", "-v"], "-q and -v exclude each other"),
        (["state", "bogus"], "bogus"),
        (["init"], "PZ0132"),
        (["init", "x", "--list-templates"], "PZ0132"),
        (["validate", "--vars", "[]"], "PZ0102"),
    ],
)
def test_usage_errors_exit_two(pz: Call, arguments: list[str], said: str) -> None:
    """A command line that cannot be understood is refused on standard error with exit code 2."""
    called = pz(*arguments)
    assert called.code == 2
    assert said in called.err
    assert called.out == ""


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["run", "--help"], ["state", "show", "-h"]])
def test_help_exits_zero(pz: Call, arguments: list[str]) -> None:
    """Help is a result: standard output, exit code 0."""
    called = pz(*arguments)
    assert called.code == 0
    assert called.out.startswith("Usage: pz")
    assert called.err == ""


def test_version_is_the_packages(pz: Call) -> None:
    """--version prints name and version."""
    assert pz("--version").out == f"pz {__version__}\n"


def test_module_is_the_same_program(pz_process: Call) -> None:
    """`python -m pz_engine` answers like `pz`."""
    called = pz_process("--version")
    assert (called.code, called.out) == (0, f"pz {__version__}\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EACCES, "Permission denied", "/x/y"), "PZ0531"),
        (OSError(errno.EROFS, "Read-only file system", "/x/y"), "PZ0531"),
        (OSError(errno.ENOSPC, "No space left on device"), "PZ0532"),
        (OSError(errno.EBUSY, "Device or resource busy"), "PZ0533"),
        (OSError(errno.EIO, "Input/output error"), "PZ0500"),
        (RuntimeError("value 'secret' is odd"), "PZ0500"),
        (RuntimeError(), "PZ0500"),
    ],
)
def test_unexpected_failure_is_one_line(pz: Call, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str) -> None:
    """Whatever nobody anticipated is one line with a code, exit code 3, no trace and no value."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("pz_engine.app.listing.list_nodes", fail)
    called = pz("ls")
    assert called.code == 3
    assert called.err.count("\n") == 1
    assert called.err.startswith(f"error {code}: ")
    assert "secret" not in called.err


def test_cause_decides_over_its_wrapper(pz: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk behind another exception is still a full disk."""

    def fail(*_: object, **__: object) -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as cause:
            raise RuntimeError("could not write") from cause

    monkeypatch.setattr("pz_engine.app.listing.list_nodes", fail)
    assert "PZ0532" in pz("ls").err


def test_debug_adds_the_trace(pz: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """PZ_DEBUG shows where it happened; 0 does not."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr("pz_engine.app.listing.list_nodes", fail)
    monkeypatch.setenv("PZ_DEBUG", "1")
    assert "Traceback" in pz("ls").err
    monkeypatch.setenv("PZ_DEBUG", "0")
    assert "Traceback" not in pz("ls").err


def test_interrupt_of_a_short_verb_exits_three(pz: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends any verb with one word and exit code 3."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pz_engine.app.listing.list_nodes", interrupt)
    called = pz("ls")
    assert (called.code, called.err.strip()) == (3, "cancelled")


def test_missing_project_names_the_file(pz: Call, tmp_path: Path) -> None:
    """A folder without a project is refused by every verb that needs one."""
    for verb in ("validate", "compile", "plan", "run", "test", "ls"):
        called = pz(verb, "--project", tmp_path)
        assert called.code == 2, called.err
        assert "project.yml" in called.err
    assert pz("state", "show", "--project", tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_standard_streams_are_survived(closing: str) -> None:
    """A process without standard streams ends with the exit code it would have had."""
    command = f"{sys.executable} -m pz_engine init --list-templates {closing}"
    assert subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_lost_results_are_an_error_and_lost_lines_of_a_run_a_warning(sample: Path) -> None:
    """Results that could not be written exit 3; a run keeps the exit code it earned."""
    for arguments, code, said in (
        (["ls", "--project", str(sample)], 3, "error PZ0532: standard output could not be written"),
        (["run", "--all", "--project", str(sample)], 0, "warning: standard output could not be written"),
    ):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "pz_engine", *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == code
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == 1
