"""Values are structs; a dataclass needs a reason that shows in its body."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for package in ("pz_engine", "pz_dagster") for path in (ROOT / package).rglob("*.py"))

PUBLIC = {"PzProject", "PzTranslatorSettings", "RunRequest", "PzProjectComponent"}
"""What users construct, copy with the standard library or hand to a framework that asks for a dataclass."""

ONLY_DATACLASSES = {"repr", "compare", "init"}
"""Arguments of a field that a struct does not have."""


def has_reason(made: ast.ClassDef) -> bool:
    """Tell whether a class hides or computes a field, or is public."""
    if made.name in PUBLIC:
        return True
    for part in made.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__post_init__":
            return True
        value = part.value if isinstance(part, ast.AnnAssign) else None
        if isinstance(value, ast.Call) and ONLY_DATACLASSES & {each.arg for each in value.keywords}:
            return True
    return False


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_dataclasses_have_a_reason(path: Path) -> None:
    """Python 3.11 takes 0.3 ms to write the methods of a dataclass; hundreds of them are a part of every start."""
    for made in ast.walk(ast.parse(path.read_text())):
        if isinstance(made, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in made.decorator_list):
            assert has_reason(made), f"{made.name} can be a struct"
