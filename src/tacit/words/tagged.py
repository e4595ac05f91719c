"""Words of the same part of speech (Arnold et al. 2023b): a noun becomes a noun, a verb a verb.

A public list, or a public rule about the form of a word, says which tag a word has. For x with tag t, y is drawn among
the words with tag t alone, with probability proportional to exp(-s_t d(x, y)): SanText over the words of that tag, with
a scale of its own, calibrated exactly (`tight`) or by the textbook.

Guarantee: epsilon-metric differential privacy between any two words *of the same public tag*, as for SanText. The tag
of every word is visible with certainty, and the card says so. It is a function of the word and of nothing else: a
tagger that reads the sentence (as published) makes the tag of a word depend on the other words, so that changing one
word changes what happens to the others, and no bound for a word follows.

Words that the list does not have share one tag of their own, and so do the words of tags that fewer than `least` words
have: a word needs others to hide among.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.checks import CLOSEST_PAIRS, EVERY_WORD, Check, MadeUpWords, WordLaw, WordSamples
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency, Guarantee, Notion, Provenance
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.text.tokens import is_punctuation
from tacit.words.base import WordMechanism, digest_of
from tacit.words.calibrated import EXACT, SMALL, TEXTBOOK, percent_up
from tacit.words.santext import SanText

OTHER: Final = ""
"""The tag of words that the list does not have."""

RULES: Final = "rules"
RULES_SOURCE: Final = "a fixed rule about function words and endings"
LIST_SOURCE: Final = "a list given by the user, assumed to be public"

FUNCTION_WORDS: Final[dict[str, str]] = {
    "determiner": "a an the this that these those each every either neither some any no all both half such another",
    "pronoun": "i you he she it we they me him her us them mine yours his hers ours theirs myself yourself himself "
    "herself itself ourselves themselves who whom whose which what someone anyone everyone something anything nothing",
    "possessive": "my your its our their",
    "preposition": "of in to for with on at from by about as into like through after over between out against during "
    "without before under around among across behind below above near since until upon within toward towards despite",
    "conjunction": "and but or nor so yet because although though while if unless whereas whether than",
    "auxiliary": "am is are was were be been being have has had do does did will would shall should can could may "
    "might must",
}
ENDINGS: Final = (
    ("ly", "adverb"), ("ing", "present participle"), ("ed", "past form"),
    *((ending, "abstract noun") for ending in ("tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ism")),
    *((ending, "adjective") for ending in ("ous", "ful", "able", "ible", "ive", "ic", "al", "less", "ish")),
    *((ending, "agent") for ending in ("er", "or", "ist", "ian")),
    ("ss", "noun or verb"), ("s", "plural or third person"),
)  # fmt: skip
SHORTEST_STEM = 3
_BY_NAME: Final = {word: tag for tag, words in FUNCTION_WORDS.items() for word in words.split()}


def tag_by_rules(word: str) -> str:
    """The tag of a word by its form alone: marks, numbers, function words, endings, and everything else.

    >>> [tag_by_rules(word) for word in ("the", "slowly", "1984", "houses", "!", "house")]
    ['determiner', 'adverb', 'number', 'plural or third person', 'mark', 'noun or verb']
    """
    if is_punctuation(word):
        return "mark"
    if any(character.isdigit() for character in word):
        return "number"
    if word in _BY_NAME:
        return _BY_NAME[word]
    return next(
        (tag for ending, tag in ENDINGS if word.endswith(ending) and len(word) >= len(ending) + SHORTEST_STEM),
        "noun or verb",
    )


@dataclass(kw_only=True, eq=False)
class TaggedWords(WordMechanism):
    """SanText among words of the same part of speech, by a public rule or list: sentences keep their form, and the tag
    of every word stays visible.

    tags          "rules": function words by name, others by their ending; or a file of words and tags, one pair per
                  line with a tab between them (the first tag of a word counts)
    least         tags of fewer words than this are joined with the words that have no tag
    calibration   "exact" over the words of each tag, or the "textbook" half of epsilon
    """

    tags: str = RULES
    least: int = parameter(20, low=2)
    calibration: str = parameter(EXACT, choices=(EXACT, TEXTBOOK))

    name: ClassVar[str] = "tagged"
    title: ClassVar[str] = "Same part of speech"
    paper: ClassVar[str] = "after Arnold et al. 2023b"
    notion: ClassVar[str] = Notion.METRIC.value
    block_characters: ClassVar[int] = 4_000_000
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(1.5, 0.75, 10.0)
    told_elsewhere: ClassVar[frozenset[str]] = frozenset({"tags"})

    @cached_property
    def tag_names(self) -> list[str]:
        """The tags that form a set; the first one is that of all other words."""
        counts: dict[str, int] = {}
        for tag in self._tag_of_word:
            counts[tag] = counts.get(tag, 0) + 1
        return [OTHER, *sorted(tag for tag, count in counts.items() if tag != OTHER and count >= self.least)]

    @cached_property
    def _tag_of_word(self) -> list[str]:
        if self.tags == RULES:
            return [tag_by_rules(word) for word in self.table.words]
        known = read_tags(self.tags)
        return [known.get(word, OTHER) for word in self.table.words]

    @cached_property
    def set_of(self) -> Ids:
        numbers = {tag: number for number, tag in enumerate(self.tag_names)}
        result: Ids = np.array([numbers.get(tag, 0) for tag in self._tag_of_word], dtype=np.int64)
        if 0 < int((result == 0).sum()) < 2:
            # One word alone would stand for itself: it joins the largest set.
            result[result == 0] = np.bincount(result).argmax()
        return result

    @cached_property
    def _places(self) -> Ids:
        """The number of each word within its set."""
        places = np.empty(len(self.table), dtype=np.int64)
        for members in self._members:
            places[members] = np.arange(len(members))
        return places

    @cached_property
    def _members(self) -> list[Ids]:
        return [np.flatnonzero(self.set_of == number) for number in range(len(self.tag_names))]

    @cached_property
    def mechanisms(self) -> list[SanText | None]:
        """SanText over the words of each tag; None for a tag without words."""
        return [
            SanText(epsilon=self.epsilon, vectors=self.table.subset(members), calibration=self.calibration)
            if len(members)
            else None
            for members in self._members
        ]

    def prepare(self) -> None:
        super().prepare()
        for mechanism in self.mechanisms:
            if mechanism is not None:
                mechanism._load("distances", "certificate")

    def checks(self) -> tuple[Check, ...]:
        words = EVERY_WORD if len(self.table) <= SMALL else CLOSEST_PAIRS
        return (WordLaw(words=words), WordSamples(), MadeUpWords(sets=len(self.tag_names)))

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        sets = self.set_of[ids]
        for number, mechanism in enumerate(self.mechanisms):
            chosen = np.flatnonzero(sets == number)
            if mechanism is not None and len(chosen):
                drawn[chosen] = self._members[number][mechanism.draw(self._places[ids[chosen]], source)]
        return drawn

    def laws_of_draw(self, ids: Ids) -> Floats:
        result = np.zeros((len(ids), len(self.table)))
        sets = self.set_of[ids]
        for number, mechanism in enumerate(self.mechanisms):
            chosen = np.flatnonzero(sets == number)
            if mechanism is not None and len(chosen):
                law = mechanism.laws_of_draw(self._places[ids[chosen]])
                result[np.ix_(chosen, self._members[number])] = law
        return result

    def promise(self) -> Guarantee:
        parts = [mechanism for mechanism in self.mechanisms if mechanism is not None]
        smallest = min(len(mechanism.table) for mechanism in parts)
        parameters = self._shown_parameters()
        if self.calibration == EXACT:
            stays = sum(len(each.table) * each.certificate.stays for each in parts if each.certificate is not None)
            parameters["best guess"] = f"{percent_up(stays / len(self.table))} of the words of the vocabulary"
        return self._promise(
            Notion.METRIC,
            self.epsilon,
            adjacency=Adjacency.SAME_SET,
            metric=self._euclidean(),
            domain=f"{len(parts):,} tags ({digest_of(self.set_of)})",
            slack=max(mechanism._slack(self.epsilon) for mechanism in parts),
            parameters=parameters,
            not_covered=(
                f"the tag of every word (its part of speech, shared by {smallest:,} or more words): it is revealed "
                "with certainty",
            ),
            provenance=(Provenance("tags of words", RULES_SOURCE if self.tags == RULES else LIST_SOURCE),),
        )


def read_tags(path: str | Path) -> dict[str, str]:
    """The first tag of each word of a file with lines of a word, a tab and a tag."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise BadInputError(
            "not-utf-8", "the list of tags {path} is not UTF-8 (byte {byte})", path=path, byte=error.start
        ) from error
    except OSError as error:
        raise BadInputError(
            "unreadable-word-list", "cannot read the list of tags {path}: {reason}", path=path, reason=error.strerror
        ) from error
    tags: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        word, tab, tag = line.partition("\t")
        if line.strip() and (not tab or not word or not tag.strip()):
            raise BadInputError(
                "line-without-tag",
                "line {number} of {path} has no tab between a word and its tag: write for example 'house', a tab and "
                "'NOUN'",
                number=number,
                path=path,
            )
        if line.strip():
            tags.setdefault(word.strip().lower(), tag.split("\t")[0].strip())
    if not tags:
        raise BadInputError(
            "word-list-is-empty",
            "the list of tags {path} is empty: put a word, a tab and a tag on each line",
            path=path,
        )
    return tags
