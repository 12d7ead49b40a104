"""One translator's view of one snapshot; every method of a translator is asked once for a node.

A view lives as long as its translator, so several definitions of one project share it.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping
from functools import cached_property

import dagster as dg

from pz_dagster.keys import fold_tag_key
from pz_dagster.snapshot import Snapshot
from pz_dagster.translator import PzTranslator
from pz_dagster.visibility import is_visible
from pz_engine import CheckNode, Node, PipelineNode

_LOGGER = logging.getLogger("pz_dagster")

_views: weakref.WeakKeyDictionary[PzTranslator, Translation] = weakref.WeakKeyDictionary()


class Translation:
    """What a translator made of the nodes of a snapshot; of checks at first use."""

    def __init__(self, translator: PzTranslator, snapshot: Snapshot) -> None:
        self._translator = weakref.ref(translator)
        self.snapshot = snapshot
        self._severities: dict[str, dg.AssetCheckSeverity] = {}
        self._checks: dict[tuple[str, dg.AssetKey, bool], dg.AssetCheckSpec] = {}

    @property
    def translator(self) -> PzTranslator:
        """The translator."""
        found = self._translator()
        if found is None:
            raise ReferenceError("the translator is gone")
        return found

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Nodes that are assets, in topological order."""
        settings = self.translator.settings
        return tuple(node for node in self.snapshot.compiled.nodes if is_visible(node, settings))

    @cached_property
    def keys(self) -> Mapping[str, dg.AssetKey]:
        """What `get_asset_key` says, by node id; `get_asset_spec` may still change it."""
        return {node.id: self.translator.get_asset_key(node, self.snapshot) for node in self.nodes}

    @cached_property
    def specs(self) -> Mapping[str, dg.AssetSpec]:
        """Specs by node id."""
        _say_changed_tags(self.snapshot)
        return {node.id: self.translator.get_asset_spec(node, self.snapshot, self.keys) for node in self.nodes}

    def severity(self, node: CheckNode) -> dg.AssetCheckSeverity:
        """Return the severity of a check."""
        if node.id not in self._severities:
            self._severities[node.id] = self.translator.get_check_severity(node, self.snapshot)
        return self._severities[node.id]

    def check_spec(self, node: CheckNode, asset: dg.AssetKey, *, is_gate: bool) -> dg.AssetCheckSpec:
        """Return the spec of a check."""
        key = (node.id, asset, is_gate)
        if key not in self._checks:
            self._checks[key] = self.translator.get_check_spec(node, self.snapshot, asset, is_gate=is_gate)
        return self._checks[key]


def _say_changed_tags(snapshot: Snapshot) -> None:
    """Name the tags that Dagster would refuse; folding never happens unnoticed, and is said once."""
    tags = sorted({tag for node in snapshot.compiled.nodes if isinstance(node, PipelineNode) for tag in node.tags})
    changed = [f"'{tag}' ({fold_tag_key(tag) or 'left out'})" for tag in tags if fold_tag_key(tag) != tag]
    if changed:
        _LOGGER.warning(
            "tags of project '%s' that are spelled otherwise in Dagster: %s", snapshot.project_name, ", ".join(changed)
        )


def translate(translator: PzTranslator, snapshot: Snapshot) -> Translation:
    """Return the view of a snapshot, the one from before when both are the same objects."""
    try:
        found = _views.get(translator)
    except TypeError:  # a translator that compares by value has no hash
        return Translation(translator, snapshot)
    if found is None or found.snapshot is not snapshot:
        found = _views[translator] = Translation(translator, snapshot)
    return found
