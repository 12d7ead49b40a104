"""Plain tables whose width depends on their content and never on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pz_engine.base.printable import printable

GAP = "  "


def table_lines(header: Sequence[str], rows: Sequence[Sequence[str]], minimum: Sequence[int] = ()) -> list[str]:
    """Return header and rows with columns at least two blanks apart; the last column is not padded.

    A cell is one line, whatever it holds.

    Args:
        header: the names of the columns.
        rows: cells, as many per row as there are names.
        minimum: smallest widths of the leading columns.

    >>> table_lines(["kind", "name"], [["pipeline", "a"], ["check", "b"]])
    ['kind      name', 'pipeline  a', 'check     b']
    """
    everything = [list(header), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[index]) for row in everything) for index in range(len(header))]
    for index, width in enumerate(minimum):
        widths[index] = max(widths[index], width - len(GAP))
    return [
        GAP.join(
            cell.ljust(width) if index < len(widths) - 1 else cell
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in everything
    ]
