"""Tables as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

from tabulate import tabulate

WIDEST = 60  # characters of a line in a cell
NARROWEST = 20  # a terminal that is narrower breaks the lines itself


@dataclass(frozen=True)
class Table:
    """A title, a header, rows of text, and notes.

    Parameters
    ----------
    title : str
        A line above.
    head : tuple of str
        The names of the columns.
    rows : tuple of tuple of str
        The cells.
    notes : tuple of str
        Lines below.
    key : int
        How many first columns tell a row from the others. Where the table is too wide, they are
        repeated beside as many of the others as fit, in one panel below another. 0: a row is read
        by itself, and becomes a block of lines.

    Examples
    --------
    >>> print(Table("squares", ("n", "n^2"), (("2", "4"), ("10", "100")), ("exact",)).text())
    squares
      n    n^2
    ---  -----
      2      4
     10    100
    exact
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    key: int = 0

    def text(self, width: int | None = None) -> str:
        """Write the table as text, in panels or blocks of lines where it is wider than `width`."""
        body = self._grid(range(len(self.head)))
        if width is None or _width(body) <= width:
            return "\n".join((self.title, body, *self.notes))
        width = max(width, NARROWEST)
        panels = self._panels(width) if self.key else []
        body = "\n\n".join(panels or [self._block(row, width) for row in self.rows])
        notes = "\n".join(_wrap(note, width) for note in self.notes)
        return f"{_wrap(self.title, width)}\n{body}" + (f"\n\n{notes}" if notes else "")

    def html(self) -> str:
        """Write the table as HTML."""
        body = tabulate(
            self.rows,
            self.head,
            disable_numparse=True,
            colalign=self._alignments(),
            tablefmt="html",
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p>{html.escape(self.title)}</p>{body}{notes}"

    def _grid(self, columns: Sequence[int]) -> str:
        """Write some of the columns as a table, long cells in several lines."""
        alignments = self._alignments()
        return tabulate(
            [[_wrap(row[c], WIDEST) for c in columns] for row in self.rows],
            [self.head[c] for c in columns],
            disable_numparse=True,
            colalign=[alignments[c] for c in columns],
            tablefmt="simple",
        )

    def _panels(self, width: int) -> list[str]:
        """Give tables of as many columns as fit, the key in each; none if one does not fit."""
        key, panels = list(range(self.key)), []
        columns, grid = key, ""
        for c in range(self.key, len(self.head)):
            wider = self._grid([*columns, c])
            if _width(wider) > width and grid:
                panels.append(grid)
                columns, wider = key, self._grid([*key, c])
            if _width(wider) > width:
                return []
            columns, grid = [*columns, c], wider
        return [*panels, grid]

    def _block(self, row: tuple[str, ...], width: int) -> str:
        """Write a row as lines of a name and a cell."""
        room = max(width - max(map(len, self.head)) - 2, NARROWEST)
        cells = [(name, _wrap(cell, room)) for name, cell in zip(self.head, row, strict=True)]
        return tabulate(cells, disable_numparse=True, tablefmt="plain")

    def _alignments(self) -> tuple[str, ...]:
        def numeric(cell: str) -> bool:
            return cell.replace(",", "").replace(".", "", 1).isdigit()

        def right(column: tuple[str, ...]) -> bool:  # "-" stands for a number that there is not
            return any(map(numeric, column)) and all(c == "-" or numeric(c) for c in column)

        columns = zip(*self.rows, strict=True)
        return tuple("right" if right(column) else "left" for column in columns)


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))


def _wrap(text: str, width: int) -> str:
    return fill(text, width, break_long_words=False, break_on_hyphens=False)
