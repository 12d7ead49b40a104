"""What the pz projects of one code location have claimed, so that two of them never meet in one asset key.

Claims live as long as the definitions that made them; a project that is loaded again replaces its own.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Claim(Struct, frozen=True):
    """One output name of an op, and who has it."""

    node: str
    file: str
    project: str


class _Claims(Struct):
    owner: weakref.ref[Any]
    by_output: Mapping[str, Claim]


_claims: dict[str, list[_Claims]] = {}


def claimed_by_others(identity: str, outputs: Mapping[str, Claim]) -> dict[str, Claim]:
    """Return the outputs that living definitions of another project have already."""
    for project, claims in _claims.items():
        _claims[project] = [each for each in claims if each.owner() is not None]
    found = _collisions(identity, outputs)
    if found:
        gc.collect()
        found = _collisions(identity, outputs)
    return found


def claim(identity: str, owner: object, outputs: Mapping[str, Claim]) -> None:
    """Remember outputs for as long as `owner` lives."""
    _claims.setdefault(identity, []).append(_Claims(weakref.ref(owner), outputs))


def _collisions(identity: str, outputs: Mapping[str, Claim]) -> dict[str, Claim]:
    return {
        output: other
        for project, claims in _claims.items()
        if project != identity
        for each in claims
        if each.owner() is not None
        for output, other in each.by_output.items()
        if output in outputs
    }
