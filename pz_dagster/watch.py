"""What an op learns for its built-in checks, over all the runs of the engine it makes.

That the engine reports nothing means that nothing is wrong only where it looked: a contract or a policy that changed after
definitions were loaded ends the looking, and then nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg
from msgspec import Struct, field

from pz_dagster.builtin_checks import builtin_check_result, unevaluated_check_result
from pz_dagster.findings import EVENTS, EarlierFindings, Finding
from pz_engine import NodeResult, NodeStatus

Subject = tuple[str, str]
"""The switch of a built-in check and the name of the node it is on."""


class Watch(Struct):
    """What is known of each subject of one op."""

    counts_passes: bool = False
    """The op goes on until everything is caught up, so it matters which run of the engine saw something."""

    number: int = 1
    """Which run of the engine it is, from 1."""

    earlier: EarlierFindings = field(default_factory=EarlierFindings)
    """What is known of the nodes that are taken from earlier runs."""

    unexamined: set[Subject] = field(default_factory=set)
    """Subjects that ended well in a run of the engine that did not look at them."""

    _lost: set[Subject] = field(default_factory=set)
    """Subjects taken from a run of which nothing is known any more."""

    _unevaluated: set[Subject] = field(default_factory=set)
    """Subjects at which the engine tried to look and could not."""

    _found: dict[Subject, list[tuple[int, Finding]]] = field(default_factory=dict)
    _told: set[Subject] = field(default_factory=set)

    def begin(self, number: int) -> None:
        """Go on with another run of the engine; its results stand for those of the runs before."""
        self.number = number
        self._told.clear()

    def see(self, subject: Subject, found: Finding) -> None:
        """Take what the engine reported."""
        self._found.setdefault(subject, []).append((self.number, found))

    def conclude(
        self, subject: Subject, key: dg.AssetCheckKey, result: NodeResult, *, is_as_loaded: bool
    ) -> dg.AssetCheckResult | None:
        """Return the check's result now that its node has ended; None where nothing can be claimed.

        Args:
            subject: what the check is about.
            key: the check.
            result: how the node ended.
            is_as_loaded: the node is the one that the check was declared for.
        """
        if result.status is NodeStatus.SUCCESS:
            self._judge(subject, result, is_as_loaded=is_as_loaded)
        if subject in self._found:
            return self._failing(subject, key, result.provenance)
        if result.status is not NodeStatus.SUCCESS or subject in self.unexamined | self._lost:
            return None
        self._told.add(subject)
        if subject in self._unevaluated:
            return unevaluated_check_result(key)
        return builtin_check_result(subject[0], key, result.provenance, ())

    def rest(self, checks: Mapping[Subject, dg.AssetCheckKey]) -> Iterator[dg.AssetCheckResult]:
        """Yield what an earlier run of the engine saw in nodes that have not ended in the last one."""
        for subject, key in checks.items():
            if subject in self._found and subject not in self._told:
                yield self._failing(subject, key, None)

    def silent(self, checks: Mapping[Subject, dg.AssetCheckKey]) -> list[str]:
        """Name the checks that nobody evaluated although their nodes ended well."""
        return sorted(
            f"{key.name} of {subject[1]} (the engine did not look)"
            for subject, key in checks.items()
            if subject in self.unexamined and subject not in self._found
        )

    def _judge(self, subject: Subject, result: NodeResult, *, is_as_loaded: bool) -> None:
        """Find out what the engine's silence about a node means."""
        if result.provenance is not None:
            if self.earlier.tells(subject) and (is_as_loaded or subject[0] == "drift"):
                for found in self.earlier.found.get(subject, ()):
                    self.see(subject, found)
            else:
                self._lost.add(subject)
        elif EVENTS[subject[0]] not in result.stats.examined:
            tried = subject[0] == "drift" and result.observed_schema is not None
            (self._unevaluated if tried else self.unexamined).add(subject)

    def _failing(self, subject: Subject, key: dg.AssetCheckKey, provenance: str | None) -> dg.AssetCheckResult:
        self._told.add(subject)
        found = self._found[subject]
        passes = [number for number, _ in found] if self.counts_passes else []
        return builtin_check_result(subject[0], key, provenance, [each for _, each in found], passes)
