"""Whatever a pipeline's file holds, it compiles or is refused with registered codes, and never takes long.

PZ_FUZZ=20000 makes a long hunt; the default keeps the suite quick.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pz_engine.compile.builder import RunIdentity, compile_files
from pz_engine.compile.dag import CompiledProject
from pz_engine.compile.template.lint import lint_templates
from pz_engine.config.loader import ProjectFiles, load_project
from pz_engine.errors.codes import find_code
from pz_engine.errors.collector import ProblemCollector
from pz_engine.errors.exceptions import PzValidationError
from pz_engine.model.pipeline import PipelineFile
from pz_engine.validate.tiers import check_sql
from tests.engine.compile.template_grammar import TEMPLATES
from tests.engine.conftest import IDENTITY

EXAMPLES = int(os.environ.get("PZ_FUZZ", "0")) or 200
SECONDS = 5
ROOT = Path(__file__).parents[3]
PROJECTS = {"example": ROOT / "example_project", "sample": ROOT / "pz_engine" / "templates" / "sample"}
FILES = sorted(
    (name, str(file.relative_to(folder)))
    for name, folder in PROJECTS.items()
    for file in (folder / "pipelines").rglob("*.sql")
)
FRAGMENTS = [
    b"{{", b"}}", b"{%", b"%}", b"{#", b"#}", b"'", b'"', b"\\", b"\n", b"\r", b"\x00", b"\xff", b"\xc3", b"(", b")", b"[",
    b"]", b",", b":", b";", b"--", b"/*", b"*/", b"{{ end }}", b"{{ ref('stg_flights') }}", b"{{ run_id }}", b"{{ x }}",
    b"{{ watermark('feed', 'flights') }}", b"{{ sink('lake', 'x') }}", b"{{ source('nyc', 'flights', path: 'x') }}", b" OR ",
    b" NOT ", b" union all ", b"select ", b"with a as (", b" qualify ", b" asof join ", b" using (", b" pivot ", b" lambda x: ",
    b"::", b" materialized ", b"values (1)", b"$1", b"?", b"e'\\x'", b"$$", b"from ", b"*", b"{{ for x in var('n') }}",
]  # fmt: skip
ENV = {"E": "v"}


def fuzzed(count: int) -> Callable[..., object]:
    """Return the settings of a test that tries so many examples."""
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much,
                               HealthCheck.data_too_large, HealthCheck.large_base_example],
    )  # fmt: skip


def judge(compile_it: Callable[[], CompiledProject]) -> CompiledProject | None:
    """Compile, and check that whatever is reported is registered, placed and in time."""
    start = time.process_time()
    compiled, problems = None, ()
    try:
        compiled = compile_it()
    except PzValidationError as error:
        problems = error.errors
        assert problems
    assert time.process_time() - start < SECONDS
    event(" ".join(sorted({problem.code for problem in problems})) or "compiles")
    for problem in problems:
        entry = find_code(problem.code)
        assert entry is not None
        assert entry.life == "live"
        assert problem.hint
        assert problem.line is not None or problem.code != "PZ0104"
    return compiled


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ProjectFiles:
    """A project that a random pipeline joins."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "project.yml").write_text(
        "name: fuzz\nversion: '1'\nvars:\n  n: 3\n  name: x\n  xs: [1, 2, 3]\n  m: {a: {b: 7}, k: [1]}\n"
    )
    (folder / "connections.yml").write_text(
        "erp: {connector: localfiles, entities: {dbo.orders: {read: {columns: {id: bigint, u: timestamp}}}}}\n"
        "lake: {connector: localfiles}\n"
    )
    (folder / "pipelines" / "configs").mkdir(parents=True)
    (folder / "pipelines" / "q.sql").write_text("select id from {{ source('erp', 'dbo.orders') }}")
    (folder / "pipelines" / "e.sql").write_text("select 1 as one")
    (folder / "pipelines" / "configs" / "e.yml").write_text("pipeline: e\nmaterialization: ephemeral\n")
    return load_project(folder, env=ENV)


@given(text=TEMPLATES)
@fuzzed(EXAMPLES)
def test_any_template_compiles_or_is_refused(files: ProjectFiles, text: str) -> None:
    """Random text of both spellings ends in a graph or in the aggregate, compiled or only looked over."""
    pipeline = PipelineFile("p", "pipelines/p.sql", text)
    judge(lambda: compile_files(replace(files, pipelines=(*files.pipelines, pipeline)), env=ENV, identity=IDENTITY))
    problems = ProblemCollector()
    lint_templates([pipeline], {"p", "q", "e"}, problems)
    assert {problem.code for problem in problems.errors} <= {"PZ0104", "PZ0201"}


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """A file of a shipped project with some of its bytes changed."""
    project, name = draw(st.sampled_from(FILES))
    data = (PROJECTS[project] / name).read_bytes()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 1, 5, 40])))
        other = draw(st.integers(0, len(data)))
        put = draw(
            st.sampled_from([b"", data[other : other + 30]]) | st.sampled_from(FRAGMENTS) | st.binary(max_size=3)
        )
        data = data[:start] + put + data[end:]
    return project, name, data


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of the shipped projects, without their data."""
    target = tmp_path_factory.mktemp("copies")
    for name, folder in PROJECTS.items():
        shutil.copytree(
            folder, target / name, ignore=shutil.ignore_patterns("data", "output", ".pz", "*.py", "*.duckdb")
        )
    return {name: target / name for name in PROJECTS}


@given(case=mutated())
@fuzzed(EXAMPLES // 2)
def test_any_damage_to_a_pipeline_is_found_or_harmless(copies: dict[str, Path], case: tuple[str, str, bytes]) -> None:
    """A shipped pipeline with changed bytes compiles and binds, or is refused with registered codes."""
    project, name, data = case
    file = copies[project] / name
    original = (PROJECTS[project] / name).read_bytes()
    try:
        file.write_bytes(data)
        compiled = judge(lambda: _compiled(copies[project]))
        if compiled is not None:
            start = time.process_time()
            assert {problem.code for problem in check_sql(compiled).errors} <= {"PZ0401"}
            assert time.process_time() - start < SECONDS
    finally:
        file.write_bytes(original)


def _compiled(folder: Path) -> CompiledProject:
    identity = RunIdentity(IDENTITY.run_id, IDENTITY.started_at)
    return compile_files(load_project(folder, env=ENV), env=ENV, identity=identity)
