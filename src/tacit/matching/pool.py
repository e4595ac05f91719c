"""Pools: public sentences from which a shared corpus is made, each with its source and license.

A pool is public: whatever is made of it repeats its sentences word for word. So a pool of one's own files has to be
declared public by name, and it must never hold the texts that are to be protected.

A pool is one file (`pool.tacit`, a zip archive):

    pool.json          name, sources with their licenses, number of sentences, digest
    sentences.txt      one sentence per line
    credits.txt        for each line, "source<TAB>credit": the number of the source and who is to be named

Sentences are cleaned by fixed rules: white space is normalized, what is longer than `longest` characters is left out
(or cut into sentences first), and of those with the same words in the same order (whatever their case, accents and
punctuation) only the first is kept.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tacit.arrays import Ids
from tacit.atomic import draft_file
from tacit.errors import BadInputError
from tacit.guarantee import Provenance, ProvenanceKind
from tacit.text.files.partial import storage_error
from tacit.text.sentences import split_sentences

ASSETS = Path(__file__).with_name("assets") / "pools"
SUFFIX = ".tacit"
VERSION = 1
LONGEST = 300
"""Characters of a sentence, at most."""
KEY_BYTES = 8

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class PoolSource:
    """Where sentences come from: a name, a license, and what an attribution says of a sentence ("{credit}" in it)."""

    name: str
    license: str
    attribution: str = ""
    declared: bool = False
    """Whether it is public because its user said so."""

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "license": self.license,
            "attribution": self.attribution,
            "declared": self.declared,
        }

    @property
    def short_name(self) -> str:
        """The name without what stands in parentheses or after a colon.

        >>> PoolSource("BoolQ (Clark et al. 2019): passages of Wikipedia", "CC BY-SA 3.0").short_name
        'BoolQ'
        """
        return self.name.partition(" (")[0].partition(":")[0]

    def provenance(self) -> Provenance:
        """The line of a card that uses sentences of this source."""
        shown = f"{self.name} ({self.license})" if self.license else self.name
        if self.declared:
            return Provenance("public sentences", f"{shown}, declared public", kind=ProvenanceKind.DECLARED_PUBLIC)
        return Provenance("public sentences", shown)


@dataclass(frozen=True)
class SentencePool:
    """Public sentences. `source_ids` and `credits` belong to the sentences, one each."""

    name: str
    sentences: Sequence[str]
    sources: tuple[PoolSource, ...]
    source_ids: Ids
    credits: Sequence[str]
    digest: str

    def __len__(self) -> int:
        return len(self.sentences)

    def __repr__(self) -> str:
        return f"<Pool '{self.name}' of {len(self):,} sentences>"

    def source_of(self, sentence: int) -> PoolSource:
        """The source of the sentence at a place."""
        return self.sources[int(self.source_ids[sentence])]

    def provenance(self) -> tuple[Provenance, ...]:
        """The lines of a card that uses this pool: each source that a user declared public, and the others together if
        there are several. The attribution beside a corpus has all of them in full."""
        declared = [source for source in self.sources if source.declared]
        others = [source for source in self.sources if not source.declared]
        if len(others) < 2:
            return tuple(source.provenance() for source in self.sources)
        names = "; ".join(source.short_name for source in others)
        together = Provenance("public sentences", f"pool '{self.name}': {names} (licenses: see the attribution)")
        return (together, *(source.provenance() for source in declared))

    def attribution(self, used: Iterable[int]) -> str:
        """The text that the licenses ask for beside a corpus that repeats the sentences at these places."""
        return attribution_of([(self, place) for place in used])


def attribution_of(used: Iterable[tuple[SentencePool, int]]) -> str:
    """The attribution of sentences of several pools: by source, each sentence once."""
    by_source: dict[PoolSource, dict[str, None]] = {}
    for pool, place in used:
        by_source.setdefault(pool.source_of(place), {})[pool.credits[place]] = None
    lines = [
        "Sentences in this corpus come from the public sources below, word for word where a source does not say that "
        "they were changed."
    ]
    for source, credits in by_source.items():
        lines += ["", f"{source.name}", f"License: {source.license or 'not stated'}"]
        named = [credit for credit in credits if credit]
        if source.attribution and named:
            lines += [source.attribution, *(f"  {credit}" for credit in named)]
        elif source.attribution:
            lines.append(source.attribution)
    return "\n".join(lines) + "\n"


# Sentences ----------------------------------------------------------------------------------------------------------


def words_key(sentence: str) -> bytes:
    """By which sentences with the same words in the same order are recognized."""
    plain = unicodedata.normalize("NFKD", sentence.casefold())
    words = _WORD.findall("".join(mark for mark in plain if not unicodedata.combining(mark)))
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=KEY_BYTES).digest()


@dataclass(frozen=True)
class Cleaning:
    """How texts become sentences of a pool.

    split     cut texts into sentences
    shortest  words of a sentence, at least
    longest   characters of a sentence, at most; longer ones are left out
    """

    split: bool = False
    shortest: int = 1
    longest: int = LONGEST

    def sentences(self, text: str) -> Iterator[str]:
        plain = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
        for part in split_sentences(plain) if self.split else [plain]:
            if len(part) <= self.longest and len(_WORD.findall(part)) >= max(1, self.shortest):
                yield part


def distinct(sentences: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Sentences with their credits; of those with the same words only the first."""
    seen: set[bytes] = set()
    for sentence, credit in sentences:
        key = words_key(sentence)
        if key not in seen:
            seen.add(key)
            yield sentence, credit


# Files --------------------------------------------------------------------------------------------------------------


def write_pool(
    path: Path,
    name: str,
    sources: Sequence[PoolSource],
    entries: Iterable[tuple[str, int, str]],
    *,
    small: bool = False,
) -> tuple[int, str]:
    """Write a pool as one file from a stream of (sentence, number of its source, credit): its size, and its digest.

    The file is there completely or not at all; sentences go to the disk as they come.

    small   compress more slowly to a smaller file, for pools that are handed on
    """
    method = zipfile.ZIP_LZMA if small else zipfile.ZIP_DEFLATED
    digest, count = _new_digest(sources), 0
    credits = io.StringIO()
    try:
        with draft_file(path) as draft, zipfile.ZipFile(draft, "w", compresslevel=9) as archive:
            with archive.open(_entry("sentences.txt", method), "w", force_zip64=True) as file:
                for sentence, source, credit in entries:
                    line = sentence.encode("utf-8") + b"\n"
                    file.write(line)
                    credited = f"{source}\t{credit}\n"
                    credits.write(credited)
                    digest.update(line + credited.encode("utf-8"))
                    count += 1
            if count == 0:
                raise BadInputError("empty-pool", "no sentence is left for the pool: check the files and the column")
            archive.writestr(_entry("credits.txt", method), credits.getvalue().encode("utf-8"))
            facts = {
                "version": VERSION,
                "name": name,
                "sources": [source.to_dict() for source in sources],
                "sentences": count,
                "digest": digest.hexdigest()[:32],
            }
            archive.writestr(
                _entry("pool.json", method), json.dumps(facts, indent=2, ensure_ascii=False).encode("utf-8")
            )
    except OSError as error:
        raise storage_error(error, path) from error
    return count, digest.hexdigest()[:32]


def read_pool(path: Path) -> SentencePool:
    """The pool in a file; one that was changed is refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            facts = json.loads(archive.read("pool.json"))
            if facts["version"] != VERSION:
                raise BadInputError(
                    "pool-version", "'{path}' was made by another version: build the pool again", path=path
                )
            sentences = archive.read("sentences.txt").decode("utf-8").split("\n")[:-1]
            lines = archive.read("credits.txt").decode("utf-8").split("\n")[:-1]
        sources = tuple(PoolSource(**source) for source in facts["sources"])
        digest = _new_digest(sources)
        for sentence, line in zip(sentences, lines, strict=True):
            digest.update(f"{sentence}\n{line}\n".encode())
        numbers, credits = zip(*(line.split("\t", 1) for line in lines), strict=True)
        if digest.hexdigest()[:32] != facts["digest"]:
            raise BadInputError("damaged-pool", "'{path}' was changed after it was built: build it again", path=path)
        return SentencePool(
            str(facts["name"]), sentences, sources, np.array(numbers, dtype=np.int64), credits, facts["digest"]
        )
    except FileNotFoundError:
        raise BadInputError("no-such-pool", "there is no pool '{path}': check the name", path=path) from None
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise BadInputError(
            "not-a-pool", "'{path}' is no pool: build one with 'tacit pool build'", path=path
        ) from error


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    """An entry of the archive without the time of day, so that equal pools are equal files."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = method
    return entry


def _new_digest(sources: Sequence[PoolSource]) -> hashlib._Hash:
    listed = json.dumps([source.to_dict() for source in sources], sort_keys=True)
    return hashlib.sha256(listed.encode("utf-8"))


# Names --------------------------------------------------------------------------------------------------------------


def bundled_pools() -> list[str]:
    """The names of the pools that come with Tacit."""
    return sorted(path.name.removesuffix(SUFFIX) for path in ASSETS.glob(f"*{SUFFIX}"))


@lru_cache(maxsize=4)
def load_pool(name: str | Path = "general") -> SentencePool:
    """A pool that comes with Tacit, by its name, or the one in a file."""
    if str(name) in bundled_pools():
        return read_pool(ASSETS / f"{name}{SUFFIX}")
    path = Path(name).expanduser()
    if not path.exists():
        raise BadInputError(
            "no-such-pool",
            "there is no pool '{name}': give a file of 'tacit pool build', or one of {known}",
            name=name,
            known=", ".join(bundled_pools()),
        )
    return read_pool(path)
