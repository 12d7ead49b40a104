"""The projects that a daemon runs, each with keys of its own, so that all of them fit into one server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pz_engine.testing.project_factory import ProjectFactory

_DAYS = "".join(f"{day},2026-01-0{day} 00:00:00\n{day}0,2026-01-0{day} 23:59:59.999999\n" for day in range(1, 6))


@dataclass(frozen=True)
class Shown:
    """A project with one flow, from a load through a pipeline to a table in a DuckDB file."""

    factory: ProjectFactory
    name: str

    @property
    def op(self) -> str:
        """The op, which is named after the project."""
        return self.name

    @property
    def assets(self) -> list[list[str]]:
        """Keys of load, pipeline and sink."""
        return [[self.name, f"src_{self.name}_in__items"], [self.name, "items_out"], [f"{self.name}_mart", "items"]]

    @property
    def mart(self) -> Path:
        """The destination."""
        return self.factory.directory / "mart.duckdb"

    @property
    def watermark(self) -> Path:
        """Where positions are stored."""
        return self.factory.directory / ".pz" / "state" / "watermarks.json"

    def landed(self) -> list[int]:
        """Return what the destination holds, sorted; opened for writing, so nobody else may have it open."""
        with duckdb.connect(str(self.mart)) as connection:
            return [row[0] for row in connection.execute("select id from items order by id").fetchall()]

    def state(self) -> dict[str, bytes]:
        """Return the files of the state by name."""
        return {path.name: path.read_bytes() for path in self.watermark.parent.iterdir() if path.suffix == ".json"}

    def holders(self, path: Path | None = None) -> set[int]:
        """Return the processes that have a file open, or any file of the project."""
        wanted = str(path or self.factory.directory)
        found = set()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                targets = [str(each.readlink()) for each in (entry / "fd").iterdir()]
            except OSError:  # it has just ended, or belongs to somebody else
                continue
            if any(target == wanted or target.startswith(f"{wanted}/") for target in targets):
                found.add(int(entry.name))
        return found


def feed(directory: Path, name: str) -> Shown:
    """An incremental csv that is appended; with the variable `slow` the write goes on until somebody stops it."""
    slow = ", range(100000000) AS r(x), range(1000000) AS s(y) WHERE hash(x, y) = 0"
    shown = _shown(
        directory,
        name,
        "connector: localfiles\n  root: in",
        "read: { path: items.csv, columns: { id: bigint, at: timestamp }, sync: { mode: incremental, cursor: at } }",
        "strategy: 'append', duplicates: 'accept'",
        where="{% if var('slow') %}" + slow + "{% endif %}",
    )
    shown.factory.write("in/items.csv", "id,at\n1,2026-01-01 00:00:00\n2,2026-01-02 00:00:00\n")
    return shown


def remote(directory: Path, name: str, url: str) -> Shown:
    """An API, read incrementally and merged."""
    return _shown(
        directory,
        name,
        f"connector: http\n  base_url: {url}\n  timeout_seconds: 180",
        f"read: {{ path: /{name}, columns: {{ id: bigint }}, sync: {{ mode: incremental, cursor: id }} }}",
        "strategy: 'merge', keys: ['id']",
    )


def days(directory: Path, name: str, *, sync: str = "") -> Shown:
    """Ten events on five days, one at each end of a day, merged."""
    shown = _shown(
        directory,
        name,
        "connector: localfiles\n  root: in",
        "read: { path: items.csv, columns: { id: bigint, at: timestamp }, "
        f"sync: {{ mode: incremental, cursor: at{sync} }} }}",
        "strategy: 'merge', keys: ['id']",
    )
    shown.factory.write("in/items.csv", f"id,at\n{_DAYS}")
    return shown


def two_marts(directory: Path, name: str, url: str) -> ProjectFactory:
    """One load of an API, appended to two DuckDB files by two pipelines."""
    factory = ProjectFactory(directory / name, f'name: {name}\nversion: "1"\n')
    marts = "".join(f"{name}_{each}: {{ connector: duckdb, path: {each}.duckdb }}\n" for each in ("good", "bad"))
    factory.connections(
        f"{name}_in:\n  connector: http\n  base_url: {url}\n  entities:\n    items:\n"
        f"      read: {{ path: /{name}, columns: {{ id: bigint }} }}\n{marts}"
    )
    for each in ("good", "bad"):
        factory.pipeline(
            f"to_{each}",
            f"INSERT INTO {{{{ sink('{name}_{each}', 'items', strategy: 'append') }}}}\n"
            f"SELECT id FROM {{{{ source('{name}_in', 'items') }}}}",
        )
    return factory


def write_location(path: Path, preamble: str, projects: Sequence[str]) -> Path:
    """Write a file of definitions.

    Args:
        path: the file, beside the projects.
        preamble: more of the file; it defines the executor `executor`, and what follows may use its names.
        projects: arguments of `add`, such as `'shop', translator=Eager()`.
    """
    calls = "\n".join(f"add({each})" for each in projects)
    path.write_text(
        f"{_HEAD}{preamble}\n{calls}\ndefs = dg.Definitions.merge(*found, dg.Definitions(executor=executor))\n"
    )
    return path


_HEAD = """
from pathlib import Path
import dagster as dg
from pz_dagster import PzProject, PzTranslator, build_pz_definitions, build_pz_sensors

found = []

def project(name):
    return PzProject(Path(__file__).parent / name)

def add(name, **options):
    found.append(build_pz_definitions(project(name), **options))

"""


def _shown(directory: Path, name: str, connection: str, entity: str, write: str, *, where: str = "") -> Shown:
    factory = ProjectFactory(directory / name, f'name: {name}\nversion: "1"\nvars: {{ slow: false }}\n')
    factory.connections(
        f"{name}_in:\n  {connection}\n  entities:\n    items:\n      {entity}\n"
        f"{name}_mart: {{ connector: duckdb, path: mart.duckdb, retry: {{ max_attempts: 5 }} }}\n"
    )
    factory.pipeline(
        "items_out",
        f"INSERT INTO {{{{ sink('{name}_mart', 'items', {write}) }}}}\n"
        f"SELECT i.id FROM {{{{ source('{name}_in', 'items') }}}} AS i{where}",
    )
    return Shown(factory, name)
