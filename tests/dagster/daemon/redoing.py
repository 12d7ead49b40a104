"""A run whose sink failed is executed again over GraphQL, in both of the ways that continue it."""

from __future__ import annotations

import duckdb

from tests.dagster.daemon.scene import TOGETHER, Scene

ASSETS = [
    ["redo", "src_redo_in__items"],
    *(["redo", f"to_{each}"] for each in ("good", "bad")),
    *([f"redo_{each}", "items"] for each in ("good", "bad")),
]


def what_succeeded_is_not_done_again(scene: Scene) -> None:
    """The source is read once for both runs, and each sink is committed once, whichever of them failed before."""
    folder = scene.directory / "redo"
    bad, good = folder / "bad.duckdb", folder / "good.duckdb"
    for number, strategy in enumerate(("FROM_ASSET_FAILURE", "FROM_FAILURE"), start=1):
        bad.unlink(missing_ok=True)
        bad.write_text("this is no database")
        failed = scene.server.launch(ASSETS, location=TOGETHER)
        assert scene.server.follow(failed) == "FAILURE"
        assert rows(good) == 3 * number
        bad.unlink()
        again = scene.server.reexecute(failed, strategy)
        assert scene.server.follow(again) == "SUCCESS"
        assert scene.requests("/redo") == number
        assert (rows(good), rows(bad)) == (3 * number, 3)


def rows(path: object) -> int:
    """Count the rows of the table."""
    with duckdb.connect(str(path)) as connection:
        found = connection.execute("select count(*) from items").fetchone()
    return int(found[0]) if found else -1
