"""The example project's own files, damaged byte by byte: always a registered code, never a traceback, always in time."""

from __future__ import annotations

import time
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from fuzz_size import cases, tell
from hypothesis import given
from hypothesis import strategies as st
from schema_documents import as_editor
from schema_mutations import mutated

from pz_engine.compile.builder import RunIdentity, compile_files
from pz_engine.config.loader import load_project
from pz_engine.errors.codes import find_code
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.testing.fixed_clock import FixedClock

EXAMPLE = Path(__file__).parents[3] / "example_project"
FILES = {
    path.relative_to(EXAMPLE).as_posix(): path.read_bytes()
    for path in sorted([*EXAMPLE.glob("*.yml"), *EXAMPLE.glob("pipelines/**/*.sql"), *EXAMPLE.glob("pipelines/configs/*.yml")])
}  # fmt: skip
LIMIT_SECONDS = 5.0
MAY_HAVE_NO_FILE = {"PZ0202"}
"""A cycle belongs to several files."""

UNSEEN = {"Cc", "Cs", "Zl", "Zp"}

TOKENS = [
    b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xc3", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80", b"\r", b"\n", b"\t", b"\x1b", b"\x7f",
    b"{{", b"}}", b"{%", b"%}", b"{#", b"#}", b"{{ end }}", b"{{ if x }}", b"{% for a in [1] %}", b"{% raw %}", b"{{ ref('stg_flights') }}",
    b"{{ source('nyc', 'flights') }}", b"{{ sink('lake', 'x') }}", b"{{ watermark('feed', 'flights') }}", b"{{ var('late_after_minutes') }}",
    b"{{ env('HOME') }}", b"{{ this }}", b"{{ run_id }}", b"{{ [1] * 99 }}", b"{{ ''.join }}", b"INSERT INTO ", b"SELECT ", b"WITH a AS (",
    b"WHERE ", b" OR ", b"NOT ", b"(", b")", b"[", b"]", b"{", b"}", b"'", b'"', b"--", b"/*", b"*/", b";", b",", b"*", b".", b"::", b"$$",
    b": ", b"- ", b"#", b"&a ", b"*a", b"!x ", b"!!str ", b"<<: *a", b"---\n", b"...\n", b"|\n", b">\n", b"? ", b"%YAML 1.2\n", b"@", b"`",
    b"${X}", b"${HOME}", b"$${", b"null", b"~", b"yes", b"on", b"0", b"-1", b"1e400", b"9" * 30, b"0s", b"merge", b"replace", b"ephemeral",
    b"view", b"columns: ", b"sync: {mode: cdc}", b"sync: {mode: incremental, cursor: time_hour}", b"keys: [id]", b"outputs: {}", b"sources",
]  # fmt: skip


@st.composite
def damaged_file(draw):
    """One file of the example after up to five changes."""
    name = draw(st.sampled_from(sorted(FILES)))
    content = FILES[name]
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 40)))
        change = draw(
            st.sampled_from(["insert", "insert", "replace", "delete", "flip", "cut", "repeat", "splice", "swap"])
        )
        if change == "insert":
            content = content[:start] + draw(st.sampled_from(TOKENS)) + content[start:]
        elif change == "replace":
            content = content[:start] + draw(st.sampled_from(TOKENS)) + content[end:]
        elif change == "delete":
            content = content[:start] + content[end:]
        elif change == "flip":
            content = content[:start] + draw(st.binary(min_size=1, max_size=4)) + content[start + 1 :]
        elif change == "cut":
            content = content[:start]
        elif change == "repeat":
            content = content[:start] + content[start:end] * draw(st.integers(2, 50)) + content[end:]
        elif change == "splice":
            other = FILES[draw(st.sampled_from(sorted(FILES)))]
            middle = draw(st.integers(0, len(other)))
            content = content[:start] + other[middle : middle + 200] + content[start:]
        else:
            lines = content.split(b"\n")
            a, b = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines[a], lines[b] = lines[b], lines[a]
            content = b"\n".join(lines)
    return name, content


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A copy of the example project's files."""
    directory = tmp_path_factory.mktemp("fuzz") / "example"
    for name, content in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory


def outcome(directory):
    """Load and compile; return the codes of what is wrong, after looking at every problem."""
    began = time.process_time()
    problems = ()
    try:
        files = load_project(directory, env={"HOME": "/home/x"})
        compile_files(files, env={"HOME": "/home/x"}, identity=RunIdentity("run", FixedClock().now()))
    except PzValidationError as error:
        problems = error.errors
    for problem in problems:
        known = find_code(problem.code)
        assert known is not None, problem
        assert known.life == "live", problem
        assert problem.file is not None or problem.code in MAY_HAVE_NO_FILE, problem
        assert problem.line is None or problem.line >= 1, problem
        assert problem.hint, problem
        assert not UNSEEN & {unicodedata.category(character) for character in problem.message}, problem
    assert time.process_time() - began < LIMIT_SECONDS
    return {problem.code for problem in problems} or {"compiles"}


def test_a_damaged_file_is_a_code_or_compiles(example, capsys):
    """Every damaged version of every file either compiles or is refused with registered codes, hints and a file."""
    seen: Counter[str] = Counter()
    runs = Counter()

    @cases(400)
    @given(damaged_file())
    def damage(case):
        name, content = case
        (example / name).write_bytes(content)
        try:
            seen.update(outcome(example))
        finally:
            (example / name).write_bytes(FILES[name])
        runs[name.rpartition(".")[2]] += 1

    damage()
    assert not (example / ".pz").exists()
    assert seen["compiles"]
    assert len(seen) > 2
    tell(capsys, f"{sum(runs.values())} damaged files ({dict(runs)}): {dict(seen.most_common())}")


def test_a_changed_meaning_is_a_code_or_compiles(example, capsys):
    """Valid YAML with other keys and values either compiles or is refused, in the compiler too."""
    documents = {name: as_editor(FILES[name].decode()) for name in sorted(FILES) if name.endswith(".yml")}
    seen: Counter[str] = Counter()

    @cases(200)
    @given(st.data())
    def change(data):
        name = data.draw(st.sampled_from(["connections.yml"] * len(documents) + sorted(documents)))
        text = data.draw(mutated([documents[name]]))
        (example / name).write_text(text, encoding="utf-8")
        try:
            seen.update(outcome(example))
        finally:
            (example / name).write_bytes(FILES[name])

    change()
    assert seen["compiles"]
    assert len(seen) > 2
    tell(capsys, f"changed meanings: {dict(seen.most_common())}")
