"""Imports point downward, heavy libraries stay in the packages that own them."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    p for p in (ROOT / "pz_engine").rglob("*.py") if "templates" not in p.relative_to(ROOT / "pz_engine").parts
)

FLOORS = {
    "base": 0,
    "errors": 1,
    "model": 2,
    "config": 3,
    "duck": 3,
    "events": 3,
    "resilience": 3,
    "connectors": 4,
    "compile": 5,
    "checks": 5,
    "plan": 6,
    "state": 6,
    "execute": 7,
    "validate": 7,
    "app": 8,
    "cli": 9,
}

SIDEWAYS = {
    ("connectors", "duck"): {"pz_engine.duck.quoting"},
    ("compile", "duck"): {"pz_engine.duck.quoting", "pz_engine.duck.introspect"},
    ("checks", "duck"): {"pz_engine.duck.quoting"},
    ("compile", "connectors"): {"pz_engine.connectors.capabilities"},
}
"""Pairs of packages where only the named modules may be imported."""

OWNERS = {
    "duckdb": {"duck"},
    "pyarrow": {"duck", "connectors"},
    "yaml": {"config"},
    "jinja2": {"compile"},
    "sqlglot": {"compile"},
    "click": {"cli"},
    "rich": {"cli"},
    "jsonschema": {"validate"},
    "dagster": set(),
    "sqlalchemy": {"state"},
    "httpx": {"state", "connectors"},
}

CLI_MAY = {"app", "events", "errors", "model", "base", "cli"}


def imports_of(path: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            found.append(node.module)
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "pz_engine" else None


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_import_points_to_a_lower_floor(path: Path) -> None:
    """A module imports packages below its own, or its own; exceptions are named."""
    own = path.relative_to(ROOT / "pz_engine").parts[0].removesuffix(".py")
    if own not in FLOORS:
        return
    for module in imports_of(path):
        other = package_of(module)
        if other is None or other == own or other not in FLOORS:
            continue
        allowed = SIDEWAYS.get((own, other))
        if allowed is not None:
            assert (
                any(module == name or module.startswith(f"{name}.") for name in allowed)
                or module == f"pz_engine.{other}"
            ), module
            continue
        assert FLOORS[other] < FLOORS[own], f"{path.name} imports {module}"
        if own == "cli":
            assert other in CLI_MAY, f"{path.name} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_libraries_are_imported_only_where_they_belong(path: Path) -> None:
    """Only `duck` imports duckdb, only `cli` imports click, and so on; nothing imports the test kit or Dagster."""
    own = path.relative_to(ROOT / "pz_engine").parts[0].removesuffix(".py")
    for module in imports_of(path):
        root = module.split(".")[0]
        if own != "testing":
            assert not module.startswith("pz_engine.testing"), module
        if root in OWNERS and own != "testing":
            assert own in OWNERS[root], f"{path.name} imports {module}"


@pytest.mark.parametrize("kind", ["executors", "builtin"])
def test_siblings_do_not_import_each_other(kind: str) -> None:
    """An executor never imports another executor, a built-in connector never another built-in."""
    folder = next((ROOT / "pz_engine").rglob(kind))
    for path in folder.rglob("*.py"):
        own = path.relative_to(folder).parts[0].removesuffix(".py")
        for module in imports_of(path):
            if f".{kind}." in module:
                assert module.split(f".{kind}.")[1].split(".")[0] == own, f"{path} imports {module}"


def test_the_integration_uses_public_names_only() -> None:
    """pz_dagster imports `pz_engine` and public modules of Dagster, nothing deeper."""
    for path in sorted((ROOT / "pz_dagster").rglob("*.py")):
        for module in imports_of(path):
            if module.startswith("pz_engine"):
                assert module.count(".") <= 1, f"{path.name} imports {module}"
            if module.split(".")[0].startswith("dagster"):
                assert module in ("dagster", "dagster.components") or module in _offered("dagster.components"), (
                    f"{path.name} imports {module}"
                )
        offered = _offered("dagster")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dg":
                assert f"dagster.{node.attr}" in offered, f"{path.name} uses dagster.{node.attr}"


@cache
def _offered(package: str) -> frozenset[str]:
    """Names that a package hands on to its users, which it spells `import X as X`."""
    tree = ast.parse(Path(importlib.import_module(package).__file__ or "").read_text())
    return frozenset(
        f"{package}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name and not alias.name.startswith("_")
    )


def test_the_integration_offers_these_names() -> None:
    """What users import from `pz_dagster`, each with a docstring; the errors are in their own module."""
    import pz_dagster

    assert pz_dagster.__all__ == sorted(pz_dagster.__all__)
    assert {*pz_dagster.__all__, "build_pz_schedules", "build_pz_sensors"} == {
        "PzInvocation",
        "PzProject",
        "PzProjectComponent",
        "PzResource",
        "PzRunConfig",
        "PzTranslator",
        "PzTranslatorSettings",
        "build_pz_assets",
        "build_pz_definitions",
        "build_pz_schedules",
        "build_pz_sensors",
        "pz_assets",
    }
    for name in pz_dagster.__all__:
        assert getattr(pz_dagster, name).__doc__, name


def test_public_names_are_importable_and_listed() -> None:
    """`__all__` holds exactly the names that can be imported, in order."""
    import pz_engine

    assert pz_engine.__all__ == sorted(["__version__", *pz_engine._HOME_OF])
    for name in pz_engine.__all__:
        assert getattr(pz_engine, name) is not None
