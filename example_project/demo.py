"""Materialize the example project through Dagster and print what landed where.

Runs the same command as the README in a temporary Dagster instance, then asks that instance what happened.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run the command, then print one line for each asset and check."""
    with tempfile.TemporaryDirectory(prefix="pz-demo-") as home:
        environment = {**os.environ, "DAGSTER_HOME": home, "DAGSTER_DISABLE_TELEMETRY": "1"}
        command = [
            sys.executable, "-m", "dagster", "asset", "materialize",
            "-f", str(HERE / "definitions.py"), "--select", "*",
        ]  # fmt: skip
        print("dagster asset materialize -f example_project/definitions.py --select '*'")
        Path(home, "dagster.yaml").touch()
        log = Path(home, "run.log")
        with log.open("wb") as output:
            code = subprocess.run(
                command, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False
            ).returncode
        os.environ.update(environment)
        _report()
        if code != 0:
            print(f"\nthe run failed (exit code {code}); its last lines:")
            print("\n".join(log.read_text(errors="replace").splitlines()[-30:]))
    return code


def _report() -> None:
    import dagster as dg

    sys.path.insert(0, str(HERE))
    from definitions import defs  # the example's own module

    repository = defs.get_repository_def()
    with dg.DagsterInstance.get() as instance:
        rows = []
        for key in sorted(repository.assets_defs_by_key, key=lambda each: each.to_user_string()):
            event = instance.get_latest_materialization_event(key)
            if event is None or event.asset_materialization is None:
                rows.append((key.to_user_string(), "not materialized", "-", "-"))
                continue
            metadata = event.asset_materialization.metadata
            moved = metadata.get("pz/rows")
            rows.append(
                (
                    key.to_user_string(),
                    "materialized",
                    str(moved.value) if moved is not None else "not counted",
                    _place(metadata),
                )
            )
        _print_table(("asset", "status", "rows", "landed in"), rows)
        keys = sorted(key for each in repository.assets_defs_by_key.values() for key in each.check_keys)
        records = {key: instance.get_latest_asset_check_evaluation_record(key) for key in dict.fromkeys(keys)}
        print()
        _print_table(("check", "status"), [(key.name, _verdict(record)) for key, record in records.items()])


def _verdict(record: object) -> str:
    event = getattr(record, "event", None)
    evaluation = getattr(getattr(event, "dagster_event", None), "asset_check_evaluation_data", None)
    if evaluation is None:
        return "not evaluated"
    return "passed" if evaluation.passed else "FAILED"


def _place(metadata: object) -> str:
    uri = metadata.get("dagster/uri")  # type: ignore[attr-defined]
    if uri is not None:
        return str(uri.value)
    return "fused into its consumer" if metadata.get("pz/fused") is not None else "staging"  # type: ignore[attr-defined]


def _print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    for row in (header, *rows):
        print(
            "  ".join(
                cell.rjust(width) if i == 2 else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
        )


if __name__ == "__main__":
    sys.exit(main())
