"""Public codebooks: public sentences, and how many of them to use at which epsilon.

A codebook is made once, from public text only, before any private text is seen:

    sentences   public texts, what a release is made of, with their vectors f(y)
    sizes       for several k: k of these sentences that cover all of them well (the sentence nearest to each k-means
                center); each is the center v_c = f(y_c) of a cell, and every sentence belongs to the cell whose center
                is nearest to it
    nearness    N_k(s), measured on public sentences that were held out of everything else: the mean over x of the
                sum of  f(x) . f(out of cell c)  over the s cells c nearest to f(x)

The nearest-s staircase (see `codebook`) gives weight e^epsilon to the s cells nearest to f(x) and weight 1 to the
others, so the similarity of a public text with what would be released for it has a closed form,

    E[cos(f(x), f(out))] = ( (e^epsilon - 1) N_k(s) + N_k(k) ) / ( (e^epsilon - 1) s + k )

without looking at any private text. What counts is its gain over chance, N_k(k) / k, the similarity with a sentence
drawn without x. `choose` returns, for any epsilon, the largest k that comes within 20 % of the best gain, and with it
the best s; where that is small, the largest up to 64 that comes within 4 %: among nearly equal choices more variety in
the released texts makes better training data, above all where the private texts are all of one narrow kind. (These
margins were set on public tasks: CLINC150 and banking77 rewritten with Tatoeba sentences, banking77 with CLINC150
queries.) A small epsilon wants a large share s / k, a large epsilon a large k.

Beyond epsilon = ln k + 4 or so, the sentence nearest to x is released nearly always, and more budget buys nothing. Then
several sentences with a share of the budget each come nearer to x (see `codebook`); from which epsilon on, `repeats`
tells: similarities simulated on held-out public sentences.

Real sentences as centers are better than means of sentences: a mean has lost what its sentences do not share, and with
it up to a third of the expected similarity (measured on Tatoeba and CLINC150).

Vectors are kept as 8-bit integers with a factor for each sentence, in memory as on disk. That makes a codebook small,
and the products with other small integers exact (see `codebook` for why that matters).

Everything in a codebook has public provenance; `build_codebook` refuses anything else.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Floats32, Ids32
from tacit.atomic import draft_folder
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Provenance, check_epsilon
from tacit.places import refuse_taken_folder

Codes = NDArray[np.int8]

K_MARGIN, S_MARGIN, REPEAT_MARGIN = 0.20, 0.04, 0.02
SETTINGS, NUMBERS, SENTENCES = "codebook.json", "cells.npz", "sentences.txt.gz"
CELLS_AT_A_TIME = 1 << 22
FORMAT_VERSION = 1


VARIETY = 64


REPEAT_EPSILONS = (10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0)


MOST_REPEATS = 4


PROBE = "A short text that every encoder turns into the same vector again."


BUILD_AGAIN = "build it again with 'tacit codebook build'"


@dataclass(frozen=True)
class Choice:
    """The cells to use at an epsilon, and the similarity to expect on public text."""

    k: int
    s: int
    similarity: float


@dataclass(frozen=True, eq=False)
class Level:
    """One size of the codebook.

    codes      (sentences, dimension) int8, shared by all sizes; the vector of a sentence is its code times its factor
    factors    (sentences,) float32
    chosen     (k,) the sentences that are centers
    steps      the values of s that were measured
    nearness   (2, steps): N_k(s) when the center itself is released, and when a random sentence of its cell is
    """

    codes: Codes
    factors: Floats32
    chosen: Ids32
    steps: NDArray[np.int64]
    nearness: Floats

    @property
    def k(self) -> int:
        return len(self.chosen)

    def cells(self) -> Ids32:
        """The cell of every sentence of the codebook."""
        order, starts = self._order
        result = np.empty(len(order), dtype=np.int32)
        result[order] = np.repeat(np.arange(self.k, dtype=np.int32), np.diff(starts))
        return result

    def chance(self, *, random: bool = False) -> float:
        """Similarity of held-out public text with a sentence drawn without it."""
        return float(self.nearness[int(random), -1] / self.k)

    def gains(self, epsilon: float, *, random: bool = False, labels: int = 1) -> Floats:
        """Similarity above chance for each measured s but the last, s = k, which has none; with several labels, of the
        releases that have the right one (`codebook_joint`)."""
        result: Floats = self.similarities(epsilon, random=random, labels=labels)[:-1] - self.chance(random=random)
        return result

    @cached_property
    def vectors(self) -> Floats32:
        """(sentences, dimension)"""
        return unpacked(self.codes, self.factors)

    @cached_property
    def centers(self) -> Floats32:
        """(k, dimension)"""
        return self.vectors[self.chosen]

    @cached_property
    def _center_codes(self) -> Floats32:
        return self.codes[self.chosen].T.astype(np.float32)

    def products(self, integers: Floats32) -> Floats32:
        """(rows, k): scalar products of the centers with rows of small integers (as float32), the same to the last bit
        whatever other rows there are. All partial sums are integers below 2**24 (by Cauchy and Schwarz, for rounded
        unit vectors of up to 100,000 dimensions), so float32 adds them exactly in any order; the factor of a center
        then rounds each product once."""
        result: Floats32 = (integers @ self._center_codes) * self.factors[self.chosen]
        return result

    @cached_property
    def _order(self) -> tuple[Ids32, NDArray[np.int64]]:
        """Sentences sorted by cell and closeness to its center, and where each cell starts."""
        cells, closeness = nearest(self.vectors, self.centers)
        # A center belongs to its own cell, and comes first in it.
        cells[self.chosen], closeness[self.chosen] = np.arange(self.k), np.inf
        order = np.lexsort((-closeness, cells)).astype(np.int32)
        return order, np.searchsorted(cells[order], np.arange(self.k + 1))

    def members(self, cell: int) -> Ids32:
        """The sentences of a cell: its center, then the others, nearest first."""
        order, starts = self._order
        return order[starts[cell] : starts[cell + 1]]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        return np.diff(self._order[1])

    def pick(self, cells: NDArray[np.int64], places: NDArray[np.int64]) -> Ids32:
        """The sentence at a place (0 is the center) in each cell."""
        order, starts = self._order
        return np.asarray(order[starts[cells] + places], dtype=np.int32)

    def similarities(self, epsilon: float, *, random: bool = False, labels: int = 1) -> Floats:
        """E[cos(f(x), f(out))] on held-out public text for each measured s."""
        near = self.nearness[int(random)]
        gain = math.expm1(min(epsilon, 700.0)) / labels
        # Divided by the gain, so that a large epsilon does not overflow.
        result: Floats = (near + near[-1] / gain) / (self.steps + self.k / gain)
        return result

    def similarity(self, epsilon: float, s: int, *, random: bool = False, labels: int = 1) -> float:
        """The same for one s, interpolated between measured ones."""
        near = self.nearness[int(random)]
        gain = math.expm1(min(epsilon, 700.0)) / labels
        return float((np.interp(s, self.steps, near) + near[-1] / gain) / (s + self.k / gain))


@dataclass(frozen=True, eq=False)
class PublicCodebook:
    """Sentences and their cells, with where they come from."""

    sentences: list[str]
    codes: Codes
    factors: Floats32
    levels: dict[int, Level]
    encoder: str
    probe: Floats32
    provenance: Provenance
    license: str = ""
    held_out: int = 0
    repeats: Floats = field(default_factory=lambda: np.zeros((1, len(REPEAT_EPSILONS))))
    digest: str = field(default="")

    def __post_init__(self) -> None:
        check_public(self.provenance)
        object.__setattr__(self, "digest", self._digest())

    @property
    def sizes(self) -> list[int]:
        return sorted(self.levels)

    @property
    def dimension(self) -> int:
        return int(self.probe.shape[0])

    def level(self, k: int) -> Level:
        if k not in self.levels:
            raise BadParameterError(
                "no-such-codebook-size",
                "this codebook has no size k = {cells}: it has {sizes}; leave k out to have it chosen",
                cells=k,
                sizes=", ".join(str(size) for size in self.sizes),
            )
        return self.levels[k]

    def choose(
        self, epsilon: float, *, k: int | None = None, s: int | None = None, random: bool = False, labels: int = 1
    ) -> Choice:
        """The (k, s) with the largest expected similarity at this epsilon, on public text only; or the best one with
        the k or the s that is given. `random`: a random sentence of the cell is released instead of its center;
        `labels`: so many labels are released by the same choice."""
        check_epsilon(epsilon)
        sizes = [size for size in (self.sizes if k is None else [k]) if s is None or 1 <= s < self.level(size).k]
        if not sizes:
            largest = self.sizes[-1] if k is None else k
            raise BadParameterError(
                "impossible-number-of-near-cells",
                "s must lie between 1 and {largest}, not {near}: the rest of the cells hide it",
                largest=largest - 1,
                near=s,
            )
        gains = {size: self.level(size).gains(epsilon, random=random, labels=labels) for size in sizes}
        best = max(float(values.max()) for values in gains.values())
        size = max(size for size in sizes if gains[size].max() >= (1 - K_MARGIN) * best)
        level = self.level(size)
        if s is None:
            best_s = int(level.steps[gains[size].argmax()])
            nearly = level.steps[:-1][gains[size] >= (1 - S_MARGIN) * gains[size].max()]
            s = max(best_s, int(nearly[nearly <= VARIETY].max(initial=0)))
        return Choice(size, s, level.similarity(epsilon, s, random=random, labels=labels))

    def choose_symbols(self, epsilon: float) -> int:
        """The number of sentences to release at this epsilon: more only where they are clearly nearer to public
        text."""
        best = 1
        for count in range(2, len(self.repeats) + 1):
            now, more = (float(np.interp(epsilon, REPEAT_EPSILONS, self.repeats[m - 1])) for m in (best, count))
            if epsilon >= REPEAT_EPSILONS[0] and more > now + REPEAT_MARGIN:
                best = count
        return best

    # Files ----------------------------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the codebook as a folder, whole or not at all."""
        target = Path(folder)
        refuse_taken_folder(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft_folder(target) as draft:
            self._write(draft)

    def _write(self, folder: Path) -> None:
        arrays: dict[str, NDArray[np.generic]] = {
            "probe": self.probe,
            "repeats": self.repeats,
            "codes": self.codes,
            "factors": self.factors,
        }
        for k, level in self.levels.items():
            arrays |= {f"chosen_{k}": level.chosen, f"steps_{k}": level.steps, f"nearness_{k}": level.nearness}
        with (folder / NUMBERS).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        with gzip.GzipFile(folder / SENTENCES, "wb", mtime=0) as zipped:
            zipped.write("".join(f"{sentence}\n" for sentence in self.sentences).encode())
        settings = {
            "format": "tacit-codebook",
            "version": FORMAT_VERSION,
            "digest": self.digest,
            "encoder": self.encoder,
            "dimension": self.dimension,
            "sizes": self.sizes,
            "sentences": len(self.sentences),
            "held_out": self.held_out,
            "name": self.provenance.name,
            "source": self.provenance.source,
            "public": self.provenance.public,
            "paid_by": self.provenance.paid_by,
            "license": self.license,
        }
        text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        (folder / SETTINGS).write_text(text, encoding="utf-8")

    def _digest(self) -> str:
        """Names everything a release depends on."""
        content = hashlib.blake2b(digest_size=16, person=b"tacit-codebook")
        content.update(json.dumps([FORMAT_VERSION, self.encoder, self.sizes, self.sentences]).encode())
        numbers: list[NDArray[np.generic]] = [self.codes, self.factors, self.repeats]
        for k in self.sizes:
            numbers += [self.levels[k].chosen, self.levels[k].steps, self.levels[k].nearness]
        for array in numbers:
            content.update(np.ascontiguousarray(array).tobytes())
        content.update(self.probe.tobytes())
        return content.hexdigest()


def packed(vectors: Floats32) -> tuple[Codes, Floats32]:
    """Codes and factors of vectors, each with the whole range of 8 bits."""
    factors = (np.maximum(np.abs(vectors).max(axis=1), 1e-30) / 127.0).astype(np.float32)
    return np.clip(np.rint(vectors / factors[:, None]), -127, 127).astype(np.int8), factors


def unpacked(codes: Codes, factors: Floats32) -> Floats32:
    result: Floats32 = codes.astype(np.float32) * factors[:, None]
    return result


ASSETS = Path(__file__).parent / "assets"
BUNDLED = {"static": "codebook-static", "minilm": "codebook"}
"""The codebooks that come with the package, by the encoder that they need."""
DEFAULT = "minilm"


def codebook_folder(spec: str | Path = "default") -> Path:
    """The folder of a codebook, or of one that comes with the package: "static", "minilm", or "default"."""
    name = DEFAULT if str(spec) == "default" else str(spec)
    return ASSETS / BUNDLED[name] if name in BUNDLED else Path(spec).expanduser()


def encoder_of(spec: str | Path) -> str | None:
    """The encoder that a codebook needs; None where there is no codebook to say so."""
    name = DEFAULT if str(spec) == "default" else str(spec)
    if name in BUNDLED:
        return {"static": "static-balanced"}.get(name, name)
    try:
        return str(json.loads((codebook_folder(spec) / SETTINGS).read_text(encoding="utf-8"))["encoder"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def load_codebook(spec: str | Path = "default") -> PublicCodebook:
    """A codebook from its folder, or one that comes with the package (`codebook_folder`)."""
    folder = codebook_folder(spec)
    if not folder.is_dir():
        raise BadInputError(
            "no-such-codebook",
            "there is no codebook folder '{path}': build one with 'tacit codebook build PUBLIC_TEXT' "
            "({option.public[NAME]} {option.output[FOLDER]}), or use 'default'",
            path=spec,
        )
    settings = _settings(folder, spec)
    if settings.get("version") != FORMAT_VERSION:
        raise BadInputError(
            "codebook-of-another-version",
            "the codebook '{path}' has format {version}, and this version of tacit reads format {readable}: {advice}",
            path=spec,
            version=settings.get("version"),
            readable=FORMAT_VERSION,
            advice=BUILD_AGAIN,
        )
    try:
        codebook = _read(folder, settings)
    except (OSError, EOFError, KeyError, TypeError, ValueError, IndexError, zipfile.BadZipFile, gzip.BadGzipFile):
        raise _damaged(spec, "a file is missing or cannot be read") from None
    if codebook.digest != settings.get("digest"):
        raise _damaged(spec, "its content does not match its digest")
    return codebook


def _settings(folder: Path, spec: str | Path) -> dict[str, object]:
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInputError(
            "not-a-codebook",
            "'{path}' is not a codebook: it has no {file}; give a folder made by 'tacit codebook build'",
            path=spec,
            file=SETTINGS,
        ) from None
    except (OSError, ValueError):
        raise _damaged(spec, f"{SETTINGS} cannot be read") from None
    if not isinstance(settings, dict) or settings.get("format") != "tacit-codebook":
        raise BadInputError(
            "not-a-codebook", "'{path}' is not a codebook: give a folder made by 'tacit codebook build'", path=spec
        )
    return settings


def _read(folder: Path, settings: dict[str, Any]) -> PublicCodebook:
    with gzip.open(folder / SENTENCES, "rb") as zipped:
        sentences = zipped.read().decode("utf-8").split("\n")[:-1]
    with np.load(io.BytesIO((folder / NUMBERS).read_bytes()), allow_pickle=False) as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
        levels = {}
        for k in settings["sizes"]:
            level = Level(codes, factors, arrays[f"chosen_{k}"], arrays[f"steps_{k}"], arrays[f"nearness_{k}"])
            if level.k != k or level.chosen.min() < 0 or level.nearness.shape != (2, len(level.steps)):
                raise ValueError("the parts do not fit together")
            levels[int(k)] = level
        probe, repeats = arrays["probe"], arrays["repeats"]
    if not len(codes) == len(factors) == len(sentences) or codes.dtype != np.int8 or not levels:
        raise ValueError("the parts do not fit together")
    provenance = Provenance(
        str(settings["name"]), str(settings["source"]), bool(settings["public"]), settings.get("paid_by")
    )
    return PublicCodebook(
        sentences,
        codes,
        factors,
        levels,
        str(settings["encoder"]),
        probe,
        provenance,
        str(settings.get("license", "")),
        int(settings.get("held_out", 0)),
        repeats,
    )


def _damaged(spec: str | Path, what: str) -> BadInputError:
    return BadInputError(
        "damaged-codebook",
        "the codebook '{path}' is damaged ({what}): copy it again, or {advice}",
        path=spec,
        what=what,
        advice=BUILD_AGAIN,
    )


def check_public(provenance: Provenance) -> None:
    if not provenance.public:
        raise BadInputError(
            "text-not-public",
            "a codebook is made of public text only, and this text is marked private: every release would repeat "
            "its sentences as they are. Build it from public text of the same kind instead",
        )


def nearest(vectors: Floats32, centers: Floats32) -> tuple[Ids32, Floats]:
    """The nearest center of each vector, and how similar it is."""
    cells = np.empty(len(vectors), dtype=np.int32)
    closeness = np.empty(len(vectors))
    for rows in blocks(len(vectors), len(centers)):
        similar = vectors[rows] @ centers.T
        cells[rows] = similar.argmax(axis=1)
        closeness[rows] = similar.max(axis=1)
    return cells, closeness


def blocks(rows: int, columns: int) -> list[slice]:
    step = max(1, CELLS_AT_A_TIME // max(1, columns))
    return [slice(start, start + step) for start in range(0, rows, step)]
