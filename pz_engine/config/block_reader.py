"""Reads a mapping by its definition.

Every problem is reported at its line with the code of its key, and reading goes on with the key's default.
"""

from __future__ import annotations

import re
from typing import TypeVar

from pz_engine.config.definitions import Block, Key, Retired
from pz_engine.config.kinds import Choice, Malformed, Word
from pz_engine.config.located import Located, Scalar, Table
from pz_engine.config.reporter import Reporter

_Value = TypeVar("_Value")
_SHOWABLE = re.compile(r"[A-Za-z0-9_.]{1,64}")


class BlockReader:
    """The values of one mapping."""

    def __init__(self, block: Block, table: Table, report: Reporter) -> None:
        self.block = block
        self.table = table
        self.report = report

    def refuse_other_keys(self) -> bool:
        """Report unknown and retired keys and tell whether there was any."""
        names = frozenset(self.block.names)
        retired = {entry.name: entry for entry in self.block.retired}
        is_clean = True
        for name, node in self.table.entries.items():
            if name in retired:
                if retired[name].is_reported:
                    refuse_retired(retired[name], node, self.table.line_of(name), self.report)
            elif name in names or self.block.is_open:
                continue
            else:
                where = f"{self.block.path} " if self.block.path else ""
                self.add(
                    self.block.code, f"{where}has an unknown key '{name}'", name,
                    self.report.near_miss(name, self.block.names) or f"accepted keys: {', '.join(self.block.names)}",
                )  # fmt: skip
            is_clean = False
        return not is_clean

    def read(self, key: Key[_Value]) -> _Value:
        """Return a key's value, or its default when it is absent or malformed."""
        node = self.present(key)
        if node is None:
            if key.is_required and key.name not in self.table.entries:
                self.add(
                    key.code or self.block.code, f"the required key {self._path(key)} is missing", key.name, _hint(key)
                )
            return key.default
        try:
            return key.kind.parse(node)
        except Malformed as problem:
            self.refuse(key, node, problem)
        return key.default

    def present(self, key: Key[_Value]) -> Located | None:
        """Return what stands at a key, or None when nothing that counts does."""
        node = self.table.entries.get(key.name)
        return None if node is None or (node.is_blank and key.may_be_blank) else node

    def refuse(self, key: Key[_Value], node: Located, problem: Malformed) -> None:
        """Report a malformed value."""
        found = f", not {problem.found}" if problem.found else ""
        miss = None
        if isinstance(key.kind, (Choice, Word)) and isinstance(node, Scalar):
            miss = self.report.near_miss(node.text, key.kind.words)
        cause = f"{self._path(key)} must be {key.kind.wanted}{found}"
        line = problem.line or self.table.line_of(key.name)
        self.report.add(key.code or self.block.code, cause, line=line, hint=miss or _hint(key))

    def add(self, code: str, cause: str, key: str, hint: str) -> None:
        """Report a problem at the line of a key."""
        self.report.add(code, cause, line=self.table.line_of(key), hint=hint)

    def _path(self, key: Key[_Value]) -> str:
        return f"{self.block.path}.{key.name}" if self.block.path else key.name


def refuse_retired(retired: Retired, node: Located, line: int | None, report: Reporter) -> None:
    """Report a retired key; the hint carries the old value over when it is safe to show."""
    value = node.get(retired.inner) if retired.inner and isinstance(node, Table) else node
    is_shown = isinstance(value, Scalar) and _SHOWABLE.fullmatch(value.text) is not None
    text = value.text if is_shown and isinstance(value, Scalar) else retired.placeholder
    report.add(retired.code, retired.cause, line=line, hint=retired.hint.replace("<value>", text))


def _hint(key: Key[_Value]) -> str:
    return f"write {key.name}: {key.example or key.kind.example}"
