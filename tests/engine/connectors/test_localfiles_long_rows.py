"""A row may be long, and one that is too long is named."""

from __future__ import annotations

import pytest

from pz_engine.connectors.api import ReadSpec
from pz_engine.connectors.registry import find_connector
from pz_engine.duck.checked_scan import resolve_scan
from pz_engine.errors.exceptions import PzConnectorError

MIB = 1024 * 1024
CONTRACT = {"k": "int", "v": "varchar"}


@pytest.mark.parametrize("tier", ["native", "universal"])
@pytest.mark.parametrize("options", [{"columns": CONTRACT}, {"columns": CONTRACT, "ragged": "pad"}])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_row_of_nearly_the_limit_lands(put, land, tier, options, name):
    """Quoted line breaks in it included."""
    long = "x" * (8 * MIB) + "\n" + "y" * (8 * MIB - 100)
    put(name, f'k,v\n1,a\n2,"{long}"\n3,b\n')
    assert land(name, tier=tier, **options) == [(1, "a"), (2, long), (3, "b")]


def test_types_are_inferred_beside_a_long_row(put, land):
    """Nobody has to declare columns because of it."""
    put("t.csv", f"k,v\n1,a\n2,{'x' * (5 * MIB)}\n")
    assert land("t.csv")[1] == (2, "x" * (5 * MIB))
    assert land.types == {"k": "BIGINT", "v": "VARCHAR"}


@pytest.mark.parametrize("mebibytes", [17, 40])
@pytest.mark.parametrize("options", [{}, {"columns": CONTRACT}, {"columns": CONTRACT, "ragged": "pad"}])
def test_row_beyond_the_limit_fails_naming_file_line_and_limit(put, land, mebibytes, options):
    """The line is the one the row begins on."""
    put("t.csv", f'k,v\n1,"a\nb"\n2,{"x" * (mebibytes * MIB)}\n3,b\n')
    with pytest.raises(PzConnectorError, match=r"^file 't\.csv', line 4 begins a row of more than 16 MiB") as caught:
        land("t.csv", **options)
    assert caught.value.hint


@pytest.mark.parametrize("ragged", ["fail", "pad"])
def test_row_far_beyond_the_limit_fails_on_the_universal_tier_too(put, land, ragged):
    """With the same words."""
    put("t.csv", f'k,v\n1,"a\nb"\n2,{"x" * (40 * MIB)}\n3,b\n')
    with pytest.raises(PzConnectorError, match=r"^file 't\.csv', line 4 begins a row of more than 16 MiB"):
        land("t.csv", tier="universal", columns=CONTRACT, ragged=ragged)


@pytest.mark.parametrize("mebibytes", [17, 40])
def test_row_beyond_the_limit_is_not_rejected_in_silence(put, cursor, tmp_path, mebibytes):
    """`ragged: reject` sets aside ragged rows only."""
    put("t.csv", f"k,v\n1,a\n2,{'x' * (mebibytes * MIB)}\n3,b\n")
    source = find_connector("localfiles").open_source({"base_dir": str(tmp_path)})
    scan = source.native_scan(ReadSpec("f", "t", {"columns": CONTRACT, "ragged": "reject"}))
    with pytest.raises(PzConnectorError, match=r"file 't\.csv', line 3 begins a row of more than 16 MiB"):
        resolve_scan(cursor, scan, CONTRACT)
