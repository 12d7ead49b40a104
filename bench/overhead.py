"""What a project costs beside its statements: many tiny nodes, and sources that keep one waiting."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import duckdb
from inputs import DATA
from jobs import project, run_command
from measure import Series, run_once

from pz_engine.testing.http_api import Answer, HttpApi, Request
from pz_engine.testing.project_factory import ProjectFactory

CHAINS = 100
LENGTH = 5
FLOWS = 4
PAGES = 5
DELAY = 0.4


def many_nodes() -> tuple[list[str], list[str], ProjectFactory]:
    """Write 500 pipelines in chains of five over one small file; returns our command and DuckDB's."""
    (DATA / "tiny.csv").write_text("id,amount\n" + "".join(f"{number},{number}.5\n" for number in range(20)))
    connections = (
        f"files: {{ connector: localfiles, root: {DATA} }}\nstore: {{ connector: duckdb, path: ours.duckdb }}\n"
    )
    pipelines: dict[str, str] = {}
    scan = f"read_csv('{DATA / 'tiny.csv'}', header = true, columns = {{'id': 'BIGINT', 'amount': 'DOUBLE'}})"
    statements = [f"create table src as select * from {scan}"]
    for chain in range(CHAINS):
        before = "{{ source('files', 'tiny', path: 'tiny.csv', columns: { id: 'bigint', amount: 'double' }) }}"
        raw = "src"
        for step in range(LENGTH):
            name = f"node_{chain:03}_{step}"
            pipelines[name] = f"select id, amount + {step} as amount from {before}\n"
            statements.append(f"create table {name} as select id, amount + {step} as amount from {raw}")
            before, raw = f"{{{{ ref('{name}') }}}}", name
    made = project("nodes", connections, pipelines, "engine: { fusion: 'off' }\n")
    script = made.directory / "statements.txt"
    database = made.directory / "raw.duckdb"
    script.write_text(
        f"import duckdb, pathlib\npathlib.Path({str(database)!r}).unlink(missing_ok=True)\n"
        f"con = duckdb.connect({str(database)!r})\n" + "".join(f"con.execute({each!r})\n" for each in statements)
    )
    return run_command(made.directory), [sys.executable, str(script)], made


def bench_many_nodes(rounds: int) -> str:
    """Time of 500 staged nodes beyond the time that DuckDB needs for the same statements."""
    ours_command, other_command, made = many_nodes()
    ours, other = [], []
    for _ in range(rounds):
        ours.append(run_once(ours_command))
        other.append(run_once(other_command))
    newest = max((made.directory / ".pz" / "runs").iterdir())
    with duckdb.connect(str(newest / "staging.duckdb"), read_only=True) as staged:
        last = f"node_{CHAINS - 1:03}_{LENGTH - 1}"
        assert staged.execute(f"select count(*), sum(id) from staging.staging.{last}").fetchone() == (20, 190)
    mine, raw = Series(tuple(ours)), Series(tuple(other))
    nodes = CHAINS * LENGTH
    return (
        f"{nodes} staged nodes: {mine.spread()}, DuckDB alone {raw.spread()}; "
        f"{(mine.wall - raw.wall) / nodes * 1000:.1f} ms a node more (target 8)"
    )


def bench_slow_sources(rounds: int) -> str:
    """Four flows that wait for a slow service each, at once and one after the other."""

    def answer(request: Request) -> Answer:
        page = int(request.query.get("page", "1"))
        records = [] if page > PAGES else [{"id": page * 10 + number} for number in range(10)]
        return Answer(body=records, delay=DELAY)

    together, apart = [], []
    with HttpApi(answer) as api:
        connections = (
            "".join(f"api{number}: {{ connector: http, base_url: '{api.url}' }}\n" for number in range(FLOWS))
            + "lake: { connector: localfiles, root: output }\n"
        )
        paging = "pagination: { type: 'page', param: 'page' }"
        pipelines = {
            f"flow{number}": f"insert into {{{{ sink('lake', 'result{number}', format: 'parquet', strategy: 'replace') }}}}\n"
            f"select * from {{{{ source('api{number}', 'things', path: '/things', {paging}, columns: {{ id: 'bigint' }}) }}}}\n"
            for number in range(FLOWS)
        }
        made = project("slow", connections, pipelines)
        for _ in range(rounds):
            together.append(run_once(run_command(made.directory)))
            _verify(made.directory)
            started = time.perf_counter()
            for number in range(FLOWS):
                run_once([name if name != "--all" else f"flow{number}" for name in run_command(made.directory)])
            apart.append(time.perf_counter() - started)
    ours = Series(tuple(together))
    other = statistics.median(apart)
    return (
        f"{FLOWS} flows with a slow service each ({PAGES + 1} pages of {DELAY:.1f} s): {ours.spread()} at once, "
        f"{other:.2f} s one after the other; ratio {ours.wall / other:.2f} (target 0.4)"
    )


def _verify(directory: Path) -> None:
    for number in range(FLOWS):
        file = directory / "output" / f"result{number}" / f"result{number}.parquet"
        assert duckdb.execute(f"select count(*) from '{file}'").fetchone() == (PAGES * 10,)
