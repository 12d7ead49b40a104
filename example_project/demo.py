"""Materialize the example project through Dagster and print what landed where.

Runs the same command as the README in a temporary Dagster instance, then asks that instance what happened.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
        shutil.copy(HERE / "dagster.yaml", home)
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
        windows = []
        written = [key for key, each in repository.assets_defs_by_key.items() if each.is_materializable]
        for key in sorted(written, key=lambda each: each.to_user_string()):
            event = instance.get_latest_materialization_event(key)
            if event is None or event.asset_materialization is None:
                rows.append((key.to_user_string(), "not materialized", "-", "-"))
                continue
            metadata = event.asset_materialization.metadata
            moved = metadata.get("pz/rows")
            if "pz/window" in metadata:
                windows.append(_window(key.to_user_string(), metadata))
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
        print("\n".join(["", *windows]))


def _window(asset: str, metadata: Any) -> str:
    window = metadata["pz/window"].value
    rest = "nothing is left" if metadata["pz/caught_up"].value else "the next run reads the next window"
    return f"{asset} read what is behind {window['after']}, up to {window['to']}; {rest}"


def _verdict(record: Any) -> str:
    event = record.event.dagster_event if record is not None else None
    if event is None or event.event_type_value != "ASSET_CHECK_EVALUATION":  # planned, and then skipped
        return "not evaluated"
    return "passed" if event.asset_check_evaluation_data.passed else "FAILED"


def _place(metadata: Any) -> str:
    uri = metadata.get("dagster/uri")
    if uri is not None:
        return str(uri.value)
    return "fused into its consumer" if metadata.get("pz/fused") is not None else "staging"


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
