"""A generated project: chains, fans, many connections and checks.

The same size always gives the same bytes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

GROUP = 5
"""Pipelines of one group: two stages of a chain, then a fan of three that each write one output."""


def write_project(root: Path, pipelines: int) -> None:
    """Write a project with that many pipelines, a fifth as many source connections and twice as many checks."""
    if pipelines % GROUP:
        raise ValueError(f"pipelines must be a multiple of {GROUP}")
    shutil.rmtree(root, ignore_errors=True)
    (root / "pipelines" / "configs").mkdir(parents=True)
    (root / "project.yml").write_text(f'name: large_{pipelines}\nversion: "1"\nvars:\n  floor: 10\n')
    connections = ["warehouse:\n  connector: duckdb\n  path: warehouse.duckdb\n"]
    for group in range(pipelines // GROUP):
        connections.append(_connection(group))
        for name, sql in _group(group, previous=group - 1 if group % 4 else None).items():
            (root / "pipelines" / f"{name}.sql").write_text(sql)
            (root / "pipelines" / "configs" / f"{name}.yml").write_text(
                f"pipeline: {name}\ntags: [group_{group % 10}]\nchecks:\n  - not_null: [id]\n  - row_count: {{ min: 1 }}\n"
            )
    (root / "connections.yml").write_text("".join(connections))


def _connection(group: int) -> str:
    return (
        f"shop_{group}:\n  connector: localfiles\n  root: data\n  entities:\n"
        f"    orders_{group}:\n      read:\n        path: orders_{group}.csv\n        columns:\n"
        "          id: bigint\n          customer_id: bigint\n          amount: decimal(18,2)\n"
        "          status: varchar\n          updated_at: timestamp\n"
        "        sync:\n          mode: incremental\n          cursor: updated_at\n"
    )


def _group(group: int, previous: int | None) -> dict[str, str]:
    staged, joined = f"stg_{group}", f"joined_{group}"
    history = f"\nLEFT JOIN {{{{ ref('joined_{previous}') }}}} AS p ON p.id = s.id" if previous is not None else ""
    names = {
        staged: f"SELECT id, customer_id, amount, updated_at\nFROM {{{{ source('shop_{group}', 'orders_{group}') }}}}\n"
        "WHERE status <> 'void' AND amount >= {{ var('floor') }}\n",
        joined: "WITH ranked AS (\n    SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY updated_at) AS nth\n"
        f"    FROM {{{{ ref('{staged}') }}}}\n)\nSELECT s.id, s.customer_id, s.amount, s.nth, s.updated_at\n"
        f"FROM ranked AS s{history}\nWHERE s.nth < 100\n",
    }
    for branch, measure in enumerate(("sum(amount)", "count(*)", "max(updated_at)")):
        name = f"out_{group}_{branch}"
        names[name] = (
            f"INSERT INTO {{{{ sink('warehouse', '{name}', strategy: 'merge', keys: ['id']) }}}}\n"
            f"SELECT customer_id AS id, {measure} AS measure\nFROM {{{{ ref('{joined}') }}}}\nGROUP BY customer_id\n"
        )
    return names
