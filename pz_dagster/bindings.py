"""Which project an op belongs to.

Definition objects hold no project and no translator: an op carries a name in its tags, and the process that runs it
finds the project here after loading the same definitions.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from pz_dagster.project import PzProject
from pz_dagster.snapshot import Snapshot
from pz_dagster.translator import PzTranslator

BINDING_TAG = "pz/binding"

Checks = Literal["gate", "observe"]


class Binding(Struct, frozen=True):
    """What an op needs to run."""

    project: PzProject
    snapshot: Snapshot
    """What the definitions were built from; the files may have changed since."""

    translator: PzTranslator
    checks: Checks
    partition_by: tuple[str, ...] = ()
    """Entities that partitioned ops read in slices, as `<connection>.<entity>`."""

    def may_replace(self, other: Binding) -> bool:
        """Tell whether both come from the same lines of definitions, loaded again."""
        return (
            self.project == other.project
            and (self.checks, self.partition_by) == (other.checks, other.partition_by)
            and type(self.translator) is type(other.translator)
            and self.translator.settings == other.translator.settings
        )


_BINDINGS: dict[str, Binding] = {}


def bind(op: str, binding: Binding) -> str:
    """Remember a binding and return the name it is found under: the op's, numbered when another project has it."""
    name, number = op, 1
    while (known := _BINDINGS.get(name)) is not None and not binding.may_replace(known):
        number += 1
        name = f"{op}-{number}"
    _BINDINGS[name] = binding
    return name


def find(name: str) -> Binding:
    """Return a binding.

    Raises:
        KeyError: the definitions that made the op were not loaded in this process.
    """
    return _BINDINGS[name]
