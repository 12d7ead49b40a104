"""Which project an op belongs to.

Definition objects hold no project and no translator: an op carries a name in its tags, and the process that runs it
finds the project here after loading the same definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pz_dagster.project import PzProject
from pz_dagster.snapshot import Snapshot
from pz_dagster.translator import PzTranslator

BINDING_TAG = "pz/binding"


@dataclass(frozen=True)
class Binding:
    """What an op needs to run."""

    project: PzProject
    snapshot: Snapshot
    """What the definitions were built from; the files may have changed since."""

    translator: PzTranslator
    checks: Literal["gate", "observe"]


_BINDINGS: dict[str, Binding] = {}


def bind(name: str, binding: Binding) -> None:
    """Remember a binding; loading definitions again replaces it."""
    _BINDINGS[name] = binding


def find(name: str) -> Binding:
    """Return a binding.

    Raises:
        KeyError: the definitions that made the op were not loaded in this process.
    """
    return _BINDINGS[name]
