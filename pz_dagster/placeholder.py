"""What stands for a project that does not compile: one asset that lists every problem and never materializes."""

from __future__ import annotations

import hashlib

import dagster as dg

from pz_dagster.code_references import problem_references
from pz_dagster.failures import broken_project_error
from pz_dagster.keys import PLACEHOLDER, asset_key, fold
from pz_dagster.snapshot import Snapshot


def errors_spec(snapshot: Snapshot, part: str = "") -> dg.AssetSpec:
    """Describe the problems of a project.

    Args:
        snapshot: the project.
        part: tells several placeholders of one project apart; empty for the only one.
    """
    problems, name = snapshot.compiled.problems, snapshot.project_name
    listed = "\n".join(f"- `{p.code}` {p.place or ''}: {p.message}{f' — {p.hint}' if p.hint else ''}" for p in problems)
    suffix = [hashlib.sha256(part.encode()).hexdigest()[:6]] if part else []
    return dg.AssetSpec(
        asset_key([name, "_".join([PLACEHOLDER, *suffix])]),
        group_name=fold(name),
        kinds={"pz"},
        tags={"pz/status": "broken"},
        description=f"Project `{name}` does not compile:\n\n{listed}",
        metadata=problem_references(problems, snapshot.compiled.project_dir),
        skippable=True,
    )


def errors_asset(snapshot: Snapshot, part: str = "") -> dg.AssetsDefinition:
    """Show what is wrong with a project as one asset; materializing it fails with the same list."""
    spec = errors_spec(snapshot, part)

    @dg.multi_asset(name="__".join(spec.key.path), specs=[spec])
    def pz_errors() -> None:
        raise broken_project_error(snapshot.project_name, snapshot.compiled.problems)

    return pz_errors
