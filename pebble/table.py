"""Tables as text and as HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass

from tabulate import tabulate


@dataclass(frozen=True)
class Table:
    """A title, a header, rows of text, and notes.

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

    def text(self, width: int | None = None) -> str:
        """Write the table as text; where it is wider than `width`, one block of lines a row."""
        body = tabulate(
            self.rows,
            self.head,
            disable_numparse=True,
            colalign=self._alignments(),
            tablefmt="simple",
        )
        if width is not None and max(map(len, body.splitlines())) > width:
            body = "\n\n".join(
                tabulate(
                    list(zip(self.head, row, strict=True)), disable_numparse=True, tablefmt="plain"
                )
                for row in self.rows
            )
        return "\n".join((self.title, body, *self.notes))

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

    def _alignments(self) -> tuple[str, ...]:
        def numeric(cell: str) -> bool:
            return cell.replace(",", "").replace(".", "", 1).isdigit()

        columns = zip(*self.rows, strict=True)
        return tuple("right" if all(map(numeric, column)) else "left" for column in columns)
