"""The refusal of pools that hold the private rows: a corpus repeats a pool word for word, so no noise would help.

That a pool is public is a declaration, which nobody can check. What can be seen is a mistake: a pool that was built
from the private file itself, from any of its columns. It is refused before anything is spent, and nothing is released.
That a release is refused depends on the rows, so the promise is one about releases that are made, and the card of such
a release names the pools that were compared; it takes a tenth of a public pool to stand in the rows, word for word, and
then they are hardly private.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tacit.errors import BadInputError
from tacit.matching.pool import SentencePool, words_key
from tacit.text.files import open_table
from tacit.text.files.memory import is_standard_input
from tacit.text.sentences import split_sentences

FEWEST_WORDS: Final = 5
"""Words of a sentence from which on two people hardly write the same by chance."""
MOST_SHARED: Final = 0.1
"""The part of the longer sentences of a pool that may also stand in the private rows."""


COMPARED: Final = (
    "that no large part of the pool '{name}' stands in the private rows: it was compared with them, and the release "
    "would have been refused"
)
"""The line of a card that says what a release shows by being there."""


def refuse_private_pools(data: object, format: str | None, pools: Sequence[SentencePool]) -> tuple[str, ...]:
    """Lines for the card about pools that were compared with the private rows, or the error for one of which a large
    part stands in them.

    Pools that come with Tacit are not looked at, and rows that can be read only once are not read for this.
    """
    own = [pool for pool in pools if any(source.declared for source in pool.sources)]
    if not own or is_standard_input(data):
        return ()
    keys = [_long_keys(pool) for pool in own]
    looked_for = frozenset().union(*keys)
    shared = {key for key in _keys_of_rows(data, format) if key in looked_for}
    for pool, of_pool in zip(own, keys, strict=True):
        if len(of_pool & shared) > MOST_SHARED * len(of_pool):
            raise BadInputError(
                "pool-of-private-rows",
                "the pool '{name}' holds texts of the private rows, and a corpus repeats a pool word for word: build "
                "it from text that everybody may read",
                name=pool.name,
            )
    return tuple(COMPARED.format(name=pool.name) for pool in own)


def _long_keys(pool: SentencePool) -> frozenset[bytes]:
    return frozenset(words_key(sentence) for sentence in pool.sentences if len(sentence.split()) >= FEWEST_WORDS)


def _keys_of_rows(data: object, format: str | None) -> Iterator[bytes]:
    """The keys of all texts of all columns, and of their sentences."""
    with open_table(data, format) as table:
        for _, values in table.rows():
            for value in values:
                if isinstance(value, str) and len(value.split()) >= FEWEST_WORDS:
                    plain = " ".join(value.split())
                    yield words_key(plain)
                    yield from map(words_key, split_sentences(plain))
