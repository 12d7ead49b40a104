"""Switches of the translation, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BUILTIN_CHECKS = ("drift", "merge_keys", "integers", "dates")
"""What `builtin_checks` may hold."""


@dataclass(frozen=True)
class PzTranslatorSettings:
    """How a project looks in Dagster."""

    granularity: Literal["all", "endpoints"] = "all"
    """`endpoints` hides pipelines: a sink then depends on the loads behind it, and a check hangs on the nearest load above its
    pipeline. For projects where the number of events in a run matters more than detail."""

    group_by_folder: bool = False
    """Group pipelines by their folder below `pipelines/`; one group per project otherwise, which keeps small projects
    on one page."""

    key_prefix: tuple[str, ...] = ()
    """Put before every key; for locations that hold the same project twice."""

    sql_in_description: bool = True
    """Show a pipeline's SQL below its first comment; switched off where SQL is confidential."""

    code_references: bool = True
    """Link assets to the SQL file, the sidecar and the line in `connections.yml`; paths are absolute under `dagster dev`, so
    that an editor opens them, and start at the project elsewhere."""

    column_lineage: bool = False
    """Put the columns behind each column on materializations; only Dagster+ shows them."""

    builtin_checks: frozenset[str] = frozenset({"drift"})
    """What the engine watches anyway and Dagster shows as asset checks: `drift` (loads without a contract, unless the project
    ignores drift), and on request `merge_keys` (merging sinks), `integers` and `dates` (loads of text files without a
    contract). Each check costs two events in every run, so the rarely needed ones are off; what they would say is an
    observation then."""

    expose_check_samples: bool = False
    """Let sampled rows of failing checks reach Dagster's event log, which many people read."""

    data_versions: bool = True
    """Give incremental loads a data version made of node and watermark, so that a run that found nothing new leaves
    downstream assets in sync."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "builtin_checks", frozenset(self.builtin_checks))
        unknown = sorted(self.builtin_checks.difference(BUILTIN_CHECKS))
        if unknown:
            raise ValueError(f"builtin_checks: {', '.join(unknown)}; there are {', '.join(BUILTIN_CHECKS)}")
        if self.granularity not in ("all", "endpoints"):
            raise ValueError(f"granularity: {self.granularity!r} is neither 'all' nor 'endpoints'")
