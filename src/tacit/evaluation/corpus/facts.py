"""Facts and names of private rows that stand in a release, beside chance.

Names, numbers, addresses and rare words occur in a release by chance as well: "Paris" is in every pool. How often, the
held-out originals show, which the release never saw: as many private rows as there are held-out ones are drawn, strings
that both sides have are put aside, and the two shares that stand in the release are compared by Fisher's exact test. If
the two files are a random split of one, a release that repeats nothing keeps its false-alarm rate.

What no pattern sees is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.matching.words import load_vocabulary
from tacit.noise.source import public_generator
from tacit.text.tokens import split

PATTERNS = (
    ("address", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)\S*\w")),
    ("code", re.compile(r"\b(?=\w*\d)(?=\d*[^\W\d_])\w{4,}\b")),
    ("number", re.compile(r"\b\d(?:[\d.,:/-]*\d)?\b")),
    ("name", re.compile(r"(?<=[\w,;] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")),
)
"""In this order; a part of a text that a pattern has taken is not looked at by the next ones."""
RARE = "rare word"
SHORTEST_WORD = 4
SHOWN = 20
FALSE_ALARM = 0.01


@dataclass(frozen=True)
class Facts:
    """Strings of private rows and of held-out ones in a release.

    private, private_seen     of the drawn private rows alone, and how many of them stand in the release
    held_out, held_out_seen   the same of held-out rows
    p_value                   of private strings standing there no more often than held-out ones
    everywhere                strings of all private rows that stand in the release
    beyond_pool               those of them that stand in no sentence of the public pool; None without a pool
    examples                  (kind, string) of them, the private ones first: private
    """

    private: int
    private_seen: int
    held_out: int
    held_out_seen: int
    p_value: float
    everywhere: int
    beyond_pool: int | None
    examples: tuple[tuple[str, str], ...]

    @property
    def more_than_chance(self) -> bool:
        return self.p_value < FALSE_ALARM


def facts_in(
    private: Sequence[str],
    held_out: Sequence[str],
    released: Sequence[str],
    pool: Sequence[str] | None = None,
    seed: int = 0,
) -> Facts:
    """The strings that a release shares with the private rows, beside those that it shares with held-out ones."""
    from scipy.stats import fisher_exact

    size = min(len(private), len(held_out))
    drawn = [private[place] for place in public_generator(seed).permutation(len(private))[:size].tolist()]
    whole = strings_of(private)
    ours, theirs = strings_of(drawn), strings_of(held_out[:size])
    own, other = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    present = present_in(whole.keys() | other, released)
    seen, chance = len(own & present), len(other & present)
    table = [[seen, len(own) - seen], [chance, len(other) - chance]]
    p_value = float(fisher_exact(table, alternative="greater").pvalue) if own and other else 1.0
    repeated = sorted(whole.keys() & present)
    beyond = None
    if pool is not None:
        public = present_in(set(repeated), pool)
        beyond = len(set(repeated) - public)
        repeated.sort(key=lambda string: string in public)
    examples = tuple((whole[string], string) for string in repeated[:SHOWN])
    return Facts(len(own), seen, len(other), chance, p_value, len(repeated), beyond, examples)


def strings_of(texts: Sequence[str]) -> dict[str, str]:
    """Strings that name something, in small letters with one space between tokens, each with its kind."""
    known = load_vocabulary().places
    strings: dict[str, str] = {}
    for text in texts:
        left = text
        for kind, pattern in PATTERNS:
            for match in pattern.finditer(left):
                tokens = " ".join(split(match.group()))
                if len(tokens) > 1:
                    strings.setdefault(tokens, kind)
            left = pattern.sub(lambda match: "\n" * len(match.group()), left)
        for word in split(left):
            if len(word) >= SHORTEST_WORD and word.isalpha() and word not in known:
                strings.setdefault(word, RARE)
    return strings


def present_in(strings: set[str], texts: Sequence[str]) -> set[str]:
    """Those of the strings that stand in some text, as whole tokens."""
    longest = max((string.count(" ") + 1 for string in strings), default=0)
    present: set[str] = set()
    for text in texts:
        tokens = split(text)
        for start in range(len(tokens)):
            run = ""
            for token in tokens[start : start + longest]:
                run = f"{run} {token}" if run else token
                if run in strings:
                    present.add(run)
    return present
