"""A pandas accessor: importing this module gives every Series of texts `.tacit`.

    import tacit.integrations.pandas

    release = frame["text"].tacit.release("santext+", epsilon=2)
    frame["text"] = release.texts
    print(release.card().to_text())

`rewrite` returns the Series alone. Every call draws again and spends the budget again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.card import Card, ReleaseFacts
from tacit.card_words import promise_text
from tacit.errors import BadParameterError, require
from tacit.guarantee import Guarantee
from tacit.integrations.loading import loaded, settings_of
from tacit.mechanism import Mechanism, as_texts

_pandas = require("pandas", extra="pandas", purpose="the pandas accessor")

NOT_COVERED = ("the index of the Series, its order, and all other columns of its frame",)
EXAMPLE = 'series.tacit.rewrite("santext", epsilon=2)'


@dataclass(frozen=True, eq=False)
class SeriesRelease:
    """Rewritten texts with the index they had, what was promised, and how many units each text released."""

    texts: Any
    guarantee: Guarantee
    units: Any

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"<SeriesRelease of {len(self):,} texts: {promise_text(self.guarantee)}>"

    def _repr_html_(self) -> str:
        return self.card()._repr_html_()

    def card(self) -> Card:
        """The privacy card, with what the guarantee adds up to over the longest of these texts."""
        longest = int(self.units.max()) if len(self.units) else 0
        name = self.texts.name
        facts = ReleaseFacts(
            rows=len(self.texts),
            documents=len(self.texts),
            units=int(self.units.sum()),
            longest_document=longest,
            longest_row=longest,
            columns=() if name is None else (str(name),),
        )
        return Card(self.guarantee, facts)


class TacitAccessor:
    """`series.tacit`: rewriting the texts of a Series."""

    def __init__(self, series: Any) -> None:
        self._series = series

    def rewrite(self, mechanism: str | Mechanism, *, epsilon: float | None = None, **options: Any) -> Any:
        """The rewritten texts as a Series with the same index and name."""
        return self.release(mechanism, epsilon=epsilon, **options).texts

    def release(self, mechanism: str | Mechanism, *, epsilon: float | None = None, **options: Any) -> SeriesRelease:
        """The rewritten texts together with their guarantee.

        `mechanism` is a name with its parameters, or a mechanism that has them already.
        """
        series = self._series
        if isinstance(mechanism, Mechanism):
            if epsilon is not None or options:
                raise BadParameterError(
                    "options-of-a-built-mechanism",
                    "this mechanism has its parameters already: give a name to choose others",
                )
            chosen = mechanism
        else:
            chosen = loaded(mechanism, settings_of(epsilon, options, example=EXAMPLE))
        release = chosen.rewrite(as_texts(series))
        # Texts come back as texts: categories would name the original values.
        kind = None if isinstance(series.dtype, _pandas.CategoricalDtype) else series.dtype
        return SeriesRelease(
            texts=_pandas.Series(release.texts, index=series.index, name=series.name, dtype=kind),
            guarantee=release.guarantee.also_not_covered(*NOT_COVERED),
            units=_pandas.Series(release.units, index=series.index, dtype="int64"),
        )


_pandas.api.extensions.register_series_accessor("tacit")(TacitAccessor)
