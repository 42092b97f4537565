"""Results that are rows: shown as a table in a notebook, taken over into pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from surrecall import _render
from surrecall._errors import UsageError

if TYPE_CHECKING:
    import pandas


class Rows:
    """A result with `rows`, a mapping each, whose keys are columns; ids are record ids, figures are floats."""

    rows: Sequence[Mapping[str, Any]]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a DataFrame, a column a key, in the order of the rows; ids in SurrealQL's notation.

        Raises UsageError where pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise UsageError("to_pandas needs pandas", "pip install pandas") from error
        return pandas.DataFrame([_render.jsonable(row) for row in self.rows])

    def _repr_html_(self) -> str:
        """The rows as a table, in which every text is text; columns that are empty throughout are left out."""
        keys = list(dict.fromkeys(key for row in self.rows for key in row))
        shown = [key for key in keys if any(row.get(key) is not None for row in self.rows)]
        head = "".join(f"<th>{escape(key)}</th>" for key in shown)
        body = "".join(f"<tr>{''.join(_cell(row.get(key)) for key in shown)}</tr>" for row in self.rows)
        said = "".join(f"<p>{escape(_render.printable(line))}</p>" for line in self._lines())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"

    def _lines(self) -> Sequence[str]:
        """Sentences below the table."""
        return ()


def _cell(value: Any) -> str:
    right = ' style="text-align:right"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return f"<td{right}>{escape(_render.cell(value))}</td>"
