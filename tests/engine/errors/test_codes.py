"""The registry of error codes, its reference page, and the codes that the sources mention."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from pz_engine.errors.codes import all_codes, find_code

ROOT = Path(__file__).parents[3]
PACKAGES = ("pz_engine", "pz_dagster")


def _generator():
    spec = importlib.util.spec_from_file_location("generate_error_codes", ROOT / "docs" / "generate_error_codes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_codes_are_unique_and_in_order():
    """Every number is registered once, in numeric order, with a name of its own."""
    codes = [entry.code for entry in all_codes()]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"PZ0[1-7][0-9]{2}", code) for code in codes)
    names = [entry.name for entry in all_codes()]
    assert len(set(names)) == len(names)


def test_every_entry_is_complete():
    """A live code says where it is found, why, and what to do; the words come from closed sets."""
    for entry in all_codes():
        assert entry.severity in {"error", "warning", "plan reason"}
        assert entry.life in {"live", "reserved", "retired"}
        if entry.life == "live":
            assert entry.phase, entry.code
            assert entry.cause, entry.code
            assert entry.next_step, entry.code


def _mentioned() -> dict[str, str]:
    """Each code that a module starts a string with, with one module that does."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for code in re.findall(r"[\"'](PZ0[0-9]{3})", path.read_text(encoding="utf-8")):
                found[code] = path.relative_to(ROOT).as_posix()
    return found


def test_what_the_sources_raise_is_live_and_the_other_way_round():
    """A raised code is registered as live, and a live code is raised somewhere: mark it `reserved` or `live`."""
    mentioned = _mentioned()
    live = {entry.code for entry in all_codes() if entry.life == "live"}
    assert {code: path for code, path in mentioned.items() if code not in live} == {}
    assert live - set(mentioned) == set()


def test_every_live_code_is_tested():
    """Some test names each code that a user can meet."""
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    live = {entry.code for entry in all_codes() if entry.life == "live"}
    assert live - set(re.findall(r"PZ0[0-9]{3}", tests)) == set()


def test_the_reference_page_is_up_to_date():
    """docs/reference/error-codes.md is what the generator writes."""
    generator = _generator()
    assert generator.PAGE.read_text(encoding="utf-8") == generator.render_page()


def test_an_unknown_code_is_none():
    """Looking up a code that does not exist gives None."""
    assert find_code("PZ0412") is None
    assert find_code("PZ0101").name == "YamlShape"
