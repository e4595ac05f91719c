"""A function for `Dataset.map` of the library `datasets`.

    function = rewriter("santext+", epsilon=2, column="text", units_column="tokens")
    private = dataset.map(function, batched=True)
    print(function.card(private).to_text())

**The cache.** `datasets` stores what `map` returns under a hash of the data and of the function. Here that hash is made
of the mechanism, its parameters and public data, the column and the version of Tacit, and of nothing random. So running
the same program again finds the stored result, which is the release that was made before: no noise is drawn and no
budget is spent. Where there is no stored result (data in memory, caching turned off, another batch size) the texts are
drawn anew, which is a second release; within one process that is noticed and said (`SecondDrawWarning`).

**Processes.** The function holds settings and no random state. Noise comes from the operating system at the moment a
batch is rewritten, in the process that does it: `num_proc` can copy the function as it likes, and no two batches share
a stream.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tacit.card import Card, ReleaseFacts
from tacit.engines.blocks import content_digest
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Unit
from tacit.integrations.loading import canonical, loaded_from, settings_of
from tacit.noise.source import new_source
from tacit.version import __version__

EXAMPLE = 'rewriter("santext", epsilon=2, column="text")'

_drawn: Final[set[bytes]] = set()
"""Digests of the batches that this process has drawn noise for. They stay in its memory, as the texts do."""


class SecondDrawWarning(UserWarning):
    """Texts are rewritten that this process has rewritten before: a second release, which spends the budget again."""


@dataclass(frozen=True)
class Rewriter:
    """The function that `map` calls; made by `rewriter`. Equal rewriters have equal hashes in every process."""

    mechanism: str
    settings: str
    column: str
    units_column: str | None
    public_data: str
    version: str = field(default=__version__)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        texts = texts_of(batch, self.column)
        self._notice(texts)
        mechanism = loaded_from(self.mechanism, self.settings)
        result = mechanism.rewrite_texts(texts, new_source(mechanism.seed))
        released: dict[str, Any] = {self.column: result.texts}
        if self.units_column is not None:
            released[self.units_column] = [int(units) for units in result.units]
        return released

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one unit (a token, at the word level)."""
        promised = loaded_from(self.mechanism, self.settings).guarantee()
        rows = "how many rows there are, and their order"
        if promised.unit is Unit.TOKEN:
            rows = "how many rows there are, their order, and which texts are empty"
        return promised.also_not_covered(
            rows, "all other columns of the data set: 'map' keeps them, unless remove_columns names them"
        )

    def card(self, released: Any = None) -> Card:
        """The privacy card; with the released data set, also what the guarantee adds up to over its longest row."""
        if released is None:
            return Card(self.guarantee)
        if self.units_column is None:
            raise BadParameterError(
                "units-not-kept",
                "to add up over a data set, the number of units of each row must be kept: give rewriter a name for "
                'that column, for example units_column="tokens"',
            )
        units = [int(count) for count in released[self.units_column]]
        longest = max(units, default=0)
        facts = ReleaseFacts(
            rows=len(units),
            documents=len(units),
            units=sum(units),
            longest_document=longest,
            longest_row=longest,
            columns=(self.column,),
            kept_columns=tuple(name for name in released.column_names if name not in (self.column, self.units_column)),
        )
        return Card(self.guarantee, facts)

    def _notice(self, texts: Sequence[str]) -> None:
        digest = content_digest(texts, f"{self.mechanism}\n{self.settings}\n{self.column}".encode())
        if digest in _drawn and any(texts):
            warnings.warn(
                SecondDrawWarning(
                    f"{len(texts):,} texts of column '{self.column}' were rewritten before in this process, and this "
                    "second draw spends the budget again: keep the first result (save_to_disk), and do not go over a "
                    "streamed data set twice"
                ),
                stacklevel=3,
            )
        _drawn.add(digest)


def rewriter(
    mechanism: str,
    *,
    epsilon: float | None = None,
    column: str = "text",
    units_column: str | None = None,
    **options: Any,
) -> Rewriter:
    """A function for `dataset.map(function, batched=True)` that rewrites one column.

    mechanism      its name, with `epsilon` and, as further keywords, its other parameters
    column         the column of texts; the rewritten ones take its place
    units_column   a new column for the number of units (tokens) that each row released, which `card` adds up
    """
    if units_column == column:
        raise BadParameterError(
            "units-column-is-text",
            "units_column must be another column than '{column}', which takes the texts",
            column=column,
        )
    settings = canonical(settings_of(epsilon, options, example=EXAMPLE))
    # Loading here says at once what is missing, and forked workers share the memory.
    promised = loaded_from(mechanism, settings).guarantee()
    return Rewriter(mechanism, settings, column, units_column, public_digest(promised))


def public_digest(promised: Guarantee) -> str:
    """A hash of the public data behind a promise: other vectors under the same name are another function.

    Measured numbers such as the largest distance are left out, whose last digits may depend on the number of threads.
    """
    metric = promised.metric
    facts = {
        "vectors": None if metric is None else metric.fingerprint,
        "domain": promised.domain,
        "provenance": [[item.name, item.source] for item in promised.provenance],
    }
    return hashlib.blake2b(canonical(facts).encode(), digest_size=16).hexdigest()


def texts_of(batch: Mapping[str, Any], column: str) -> list[str]:
    """The texts of a batch, or what to change in the call of `map`."""
    if column not in batch:
        raise BadInputError(
            "no-such-column",
            "the data set has no column '{column}': name the column of texts with column=…",
            column=column,
        )
    values = batch[column]
    if isinstance(values, str):
        raise BadInputError("row-instead-of-batch", "one row came instead of a batch: call map with batched=True")
    texts = list(values)
    for text in texts:
        if not isinstance(text, str):
            raise BadInputError(
                "not-a-text",
                "column '{column}' has a {given} where a text should be: replace missing values first, for example "
                "with an empty string",
                column=column,
                given=type(text).__name__,
            )
    return texts
