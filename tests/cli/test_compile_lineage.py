"""compile --lineage: what it writes and says."""

from __future__ import annotations

import json
from pathlib import Path

from command_calls import Call


def test_lineage_is_written_only_when_asked_for(pz: Call, sample: Path) -> None:
    """The file stands beside the manifest, the closing line stays, and every column of the sample is known."""
    path = sample / ".pz/target/lineage.json"
    assert pz("compile", "--project", sample).code == 0
    assert not path.exists()
    called = pz("compile", "--project", sample, "--lineage")
    assert (called.code, called.out) == (0, f"Compiled 12 nodes -> {sample / '.pz/target'}\n")
    content = json.loads(path.read_text())
    assert {pipeline["name"] for pipeline in content["pipelines"]} >= {"trips_clean", "trips_enriched", "weather_daily"}
    assert all(column["from"] is not None for pipeline in content["pipelines"] for column in pipeline["columns"])


def test_a_project_with_problems_has_no_lineage(pz: Call, sample: Path) -> None:
    """Problems end the verb before anything is written."""
    (sample / "pipelines/broken.sql").write_text("select * from {{ ref('nowhere') }}")
    assert pz("compile", "--project", sample, "--lineage").code == 2
    assert not (sample / ".pz").exists()
