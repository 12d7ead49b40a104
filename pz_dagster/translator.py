"""One pz node to one Dagster spec; subclass `PzTranslator` to change any attribute.

Every method takes the node and the snapshot it belongs to. Dependencies are computed from final keys, so renaming a key
never leaves a dangling parent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import dagster as dg

from pz_dagster.code_references import code_references
from pz_dagster.keys import asset_key, entity_parts, fold, fold_tag, fold_tag_key
from pz_dagster.settings import PzTranslatorSettings
from pz_dagster.snapshot import Snapshot
from pz_dagster.visibility import visible_parents
from pz_engine import CheckNode, Node, PipelineNode, SinkWriteNode, SourceLoadNode

_SQL_LIMIT = 8192
_CHECK_NAME_LENGTH = 200


class PzTranslator:
    """Default translation."""

    def __init__(self, settings: PzTranslatorSettings | None = None) -> None:
        self.settings = settings or PzTranslatorSettings()
        """Switches; frozen."""

    def get_asset_key(self, node: Node, snapshot: Snapshot) -> dg.AssetKey:
        """Return `[project, node]` for loads and pipelines, `[connection, *entity]` for sinks."""
        if isinstance(node, SinkWriteNode):
            parts: Sequence[str] = entity_parts(node.connection, node.entity)
        else:
            parts = (snapshot.project_name, node.name)
        return asset_key([*self.settings.key_prefix, *parts])

    def get_remote_key(self, node: SourceLoadNode, snapshot: Snapshot) -> dg.AssetKey:  # noqa: ARG002 - for overriders
        """Return the key of the entity a load reads; the same rule as a sink's, so that flows join."""
        return asset_key([*self.settings.key_prefix, *entity_parts(node.connection, node.entity)])

    def get_deps(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> Sequence[dg.AssetKey]:
        """Return upstream keys; `keys` maps node ids to asset keys.

        A load depends on the entity it reads: on the sink that writes it, if the project has one. An edge inside one op
        that the engine does not order is left out afterwards. Hidden pipelines have no key; what they read is depended on.
        """
        if isinstance(node, SourceLoadNode):
            writer = snapshot.sink_of.get((node.connection, node.entity))
            if writer is not None and writer in keys:
                return [keys[writer]]
            return [self.get_remote_key(node, snapshot)]
        parents = visible_parents(node, snapshot.compiled.graph, keys)
        return list(dict.fromkeys(keys[parent] for parent in parents))

    def get_group_name(self, node: Node, snapshot: Snapshot) -> str:
        """Return the project, or `<project>/<folder>` for pipelines in folders when switched on."""
        project = fold(snapshot.project_name)
        if self.settings.group_by_folder and isinstance(node, PipelineNode):
            folders = PurePosixPath(node.file).parts[1:-1]
            return "/".join([project, *map(fold, folders)])
        return project

    def get_kinds(self, node: Node, snapshot: Snapshot) -> set[str]:
        """Return `pz` and what the node is made of."""
        if isinstance(node, PipelineNode):
            return {"pz", "sql", "duckdb"}
        if isinstance(node, SourceLoadNode):
            return {"pz", "source", _connector(node, snapshot)}
        if isinstance(node, SinkWriteNode):
            return {"pz", _connector(node, snapshot)}
        return {"pz"}

    def get_tags(self, node: Node, snapshot: Snapshot) -> Mapping[str, str]:
        """Return sidecar tags without a value, the node's kind and its flow; a tag without a legal letter is left out."""
        tags = {"pz/kind": node.kind.value, "pz/flow": fold_tag(snapshot.flow_of.get(node.id, ""))}
        if isinstance(node, PipelineNode):
            tags.update({key: "" for tag in node.tags if (key := fold_tag_key(tag)) and key not in tags})
        return tags

    def get_owners(self, node: Node, snapshot: Snapshot) -> Sequence[str]:  # noqa: ARG002 - for overriders
        """Return nobody; override with e-mails or teams (a bare word is a team)."""
        return []

    def get_description(self, node: Node, snapshot: Snapshot) -> str | None:
        """Return the pipeline's first comment and its SQL, or a sentence about the entity."""
        if isinstance(node, PipelineNode):
            comment = leading_comment(node.source_text)
            if not self.settings.sql_in_description:
                return comment
            return "\n\n".join(part for part in (comment, _fenced(node.source_text)) if part)
        if isinstance(node, SourceLoadNode):
            cursor = snapshot.incremental.get(node.id)
            how = f", only rows past the stored `{cursor}`" if cursor else ""
            return f"Loads `{node.entity}` from connection `{node.connection}` ({_connector(node, snapshot)}){how}."
        if isinstance(node, SinkWriteNode):
            keys = f" on {', '.join(f'`{key}`' for key in node.keys)}" if node.keys else ""
            return (
                f"Writes pipeline `{node.pipeline}` to `{node.entity}` on connection `{node.connection}` "
                f"({_connector(node, snapshot)}), strategy {node.strategy.value}{keys}."
            )
        return None

    def get_metadata(self, node: Node, snapshot: Snapshot) -> Mapping[str, Any]:
        """Return the node's identity and what is known before it runs."""
        metadata: dict[str, Any] = {"pz/node_id": node.id, "pz/node": node.name}
        if isinstance(node, SinkWriteNode):
            metadata["dagster/table_name"] = f"{node.connection}.{node.entity}"
        if isinstance(node, (SinkWriteNode, SourceLoadNode)):
            metadata["dagster/storage_kind"] = _connector(node, snapshot)
        if isinstance(node, SourceLoadNode) and node.columns:
            metadata["dagster/column_schema"] = dg.TableSchema(
                [dg.TableColumn(name, kind) for name, kind in node.columns.items()]
            )
        if self.settings.code_references:
            metadata.update(code_references(node, snapshot))
        return metadata

    def get_code_version(self, node: Node, snapshot: Snapshot) -> str | None:  # noqa: ARG002 - for overriders
        """Return the node id: the same inputs give the same id."""
        return node.id

    def get_automation_condition(self, node: Node, snapshot: Snapshot) -> dg.AutomationCondition | None:  # type: ignore[type-arg]  # noqa: ARG002
        """Return nothing; override to automate."""
        return None

    def get_freshness_policy(self, node: Node, snapshot: Snapshot) -> dg.FreshnessPolicy | None:  # noqa: ARG002
        """Return nothing; override to expect an asset to be fresh."""
        return None

    def get_partitions_def(self, node: Node, snapshot: Snapshot) -> dg.PartitionsDefinition | None:  # noqa: ARG002
        """Return nothing; override to partition an asset. All assets of one op share their partitions."""
        return None

    def get_asset_spec(self, node: Node, snapshot: Snapshot, keys: Mapping[str, dg.AssetKey]) -> dg.AssetSpec:
        """Build the spec of a load, pipeline or sink from the other methods."""
        return dg.AssetSpec(
            key=keys[node.id],
            deps=self.get_deps(node, snapshot, keys),
            description=self.get_description(node, snapshot),
            metadata=self.get_metadata(node, snapshot),
            group_name=self.get_group_name(node, snapshot),
            kinds=self.get_kinds(node, snapshot),
            tags=self.get_tags(node, snapshot),
            owners=[_owner(owner) for owner in self.get_owners(node, snapshot)],
            code_version=self.get_code_version(node, snapshot),
            automation_condition=self.get_automation_condition(node, snapshot),
            freshness_policy=self.get_freshness_policy(node, snapshot),
            partitions_def=self.get_partitions_def(node, snapshot),
            skippable=True,
        )

    def get_check_severity(self, node: CheckNode, snapshot: Snapshot) -> dg.AssetCheckSeverity:  # noqa: ARG002
        """Return ERROR; override to warn instead."""
        return dg.AssetCheckSeverity.ERROR

    def get_check_spec(
        self, node: CheckNode, snapshot: Snapshot, asset: dg.AssetKey, *, is_gate: bool
    ) -> dg.AssetCheckSpec:
        """Build the spec of a check; blocking when it gates and its severity is ERROR."""
        severity = self.get_check_severity(node, snapshot)
        return dg.AssetCheckSpec(
            name=fold(node.name)[:_CHECK_NAME_LENGTH],
            asset=asset,
            blocking=is_gate and severity is dg.AssetCheckSeverity.ERROR,
            description=describe_check(node),
            metadata={"pz/node_id": node.id, "pz/node": node.name, **self._references(node, snapshot)},
        )

    def _references(self, node: CheckNode, snapshot: Snapshot) -> Mapping[str, Any]:
        return code_references(node, snapshot) if self.settings.code_references else {}


def describe_check(node: CheckNode) -> str:
    """Describe a check without the values it accepts."""
    check = node.check
    what = f" on {', '.join(f'`{column}`' for column in check.columns)}" if check.columns else ""
    bounds = [f"{key} {value}" for key, value in check.options.items() if key in ("min", "max", "max_age", "name")]
    return f"{check.type.value}{what}{': ' + ', '.join(bounds) if bounds else ''}"


def leading_comment(sql: str) -> str | None:
    r"""Return the comment a file opens with, or None.

    >>> leading_comment("-- Orders\n-- worth having.\nSELECT 1"), leading_comment("/* Orders */ SELECT 1")
    ('Orders\nworth having.', 'Orders')
    """
    match = re.match(r"\s*(?:((?:[ \t]*--[^\n]*(?:\n|$))+)|/\*(.*?)\*/)", sql, re.DOTALL)
    if match is None:
        return None
    block = match[1] or match[2] or ""
    lines = [line.strip().lstrip("-*").strip() for line in block.strip().splitlines()]
    return "\n".join(lines).strip() or None


def _fenced(sql: str) -> str:
    """Show SQL as a code block, cut at a limit of bytes."""
    content = sql.strip().encode()
    text = content[:_SQL_LIMIT].decode(errors="ignore")
    if len(content) > _SQL_LIMIT:
        text += "\n-- …"
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}sql\n{text}\n{fence}"


def _owner(owner: str) -> str:
    return owner if "@" in owner or owner.startswith("team:") else f"team:{owner}"


def _connector(node: SourceLoadNode | SinkWriteNode, snapshot: Snapshot) -> str:
    return fold_tag(snapshot.compiled.connections[node.connection].connector)
