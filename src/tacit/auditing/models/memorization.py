"""Memorization of a rewriting model: does it answer with sentences of its pre-training text?

Igamberdiev 2023, section 5.4 (DP-Rewrite): an ADePT that was pre-trained, clipped but without noise, on the text it
later rewrites looks useful for the wrong reason. Two data sets, a model pre-trained on each, all four pairs:

    pre-trained on -> rewrites     Snips -> Snips .94   ATIS -> Snips .18   (macro-F1 of a classifier that is trained
                                   ATIS -> ATIS   .73   Snips -> ATIS .51    on the rewritten text, no noise)

The same-minus-cross gap is what pre-training on the private text itself brings. It is no utility of the mechanism: with
public pre-training text the cross numbers hold. The signature of the leak: outputs that lie nearer to a pre-training
sentence than to the text they should rewrite.

Measured, not proven: a small gap does not show that nothing was memorized.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.auditing.models.overlap import Corpus, edits_to_part
from tacit.auditing.models.scores.losses import check_paired
from tacit.errors import BadInputError, require
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.report import Finding, Light, Section, Table
from tacit.text.tokens import split

Rewrite = Callable[[Sequence[str]], Sequence[str]]

NEAR = 0.8
WIDE_GAP = 5.0


def bleu(outputs: Sequence[str], originals: Sequence[str]) -> float:
    """Corpus BLEU (sacrebleu, 0 to 100), case ignored."""
    sacrebleu = require("sacrebleu", extra="audit", purpose="measuring BLEU")
    return float(sacrebleu.corpus_bleu(list(outputs), [list(originals)], lowercase=True).score)


# Nearest pre-training sentence ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repeats:
    """Outputs beside the pre-training text.

    nearer     outputs nearer (in token edits) to a pre-training sentence other than their input than to their input
    copies     outputs within 20 % token edits of such a sentence
    strayed    both: the signature of the leak
    nearest    per output: similarity to its input, to the nearest other pre-training sentence, and that sentence
    """

    outputs: int
    nearer: int
    copies: int
    strayed: int
    nearest: tuple[tuple[float, float, str], ...]

    @property
    def share(self) -> float:
        return self.strayed / self.outputs if self.outputs else 0.0


def repeats(outputs: Sequence[str], originals: Sequence[str], pretraining: Sequence[str]) -> Repeats:
    """The number of outputs that are pre-training sentences. A sentence that equals the input does not count: writing
    the input back is the model's work."""
    if len(outputs) != len(originals):
        raise BadInputError(
            "texts-do-not-align",
            "there are {outputs:,} outputs for {originals:,} texts: they must align",
            outputs=len(outputs),
            originals=len(originals),
        )
    corpus = Corpus(pretraining)
    distances, nearer, copies, strayed = [], 0, 0, 0
    for output, original, overlap in zip(outputs, originals, corpus.overlaps(outputs), strict=True):
        to_input = _similarity(output, original)
        sentence = pretraining[overlap.nearest] if overlap.nearest >= 0 else ""
        to_other = overlap.similarity if split(sentence) != split(original) else 0.0
        is_copy = to_other >= NEAR and overlap.tokens > 0
        nearer += to_other > to_input
        copies += is_copy
        strayed += is_copy and to_other > to_input
        distances.append((to_input, to_other, sentence))
    return Repeats(len(outputs), nearer, copies, strayed, tuple(distances))


def _similarity(text: str, other: str) -> float:
    words: dict[str, int] = {}
    ids = [np.array([words.setdefault(w, len(words)) for w in split(t)], dtype=np.int64) for t in (text, other)]
    return 1 - edits_to_part(*ids) / len(ids[0]) if len(ids[0]) else 0.0


# Same versus cross ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatrixCell:
    """One pair: the model pre-trained on `pretrained` rewrites `rewritten`."""

    pretrained: str
    rewritten: str
    bleu: float
    macro_f1: float | None
    repeats: Repeats

    @property
    def same(self) -> bool:
        return self.pretrained == self.rewritten


@dataclass(frozen=True)
class Matrix:
    """All pairs of models and data sets."""

    names: tuple[str, ...]
    cells: tuple[MatrixCell, ...]

    def cell(self, pretrained: str, rewritten: str) -> MatrixCell:
        return next(c for c in self.cells if (c.pretrained, c.rewritten) == (pretrained, rewritten))

    def gap(self, rewritten: str, measure: str = "bleu") -> float:
        """Same minus the best cross value, for one data set."""
        chosen = [c for c in self.cells if c.rewritten == rewritten]
        same, cross = ([getattr(c, measure) for c in chosen if c.same is kind] for kind in (True, False))
        return math.nan if None in (*same, *cross) else max(same) - max(cross)


def memorization_matrix(
    rewriters: Mapping[str, Rewrite],
    data: Mapping[str, Sequence[str]],
    labels: Mapping[str, Sequence[str]] | None = None,
    *,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Matrix:
    """Every model rewrites every data set; models and data have the same names.

    labels   with classes, a classifier is trained on rewritten texts and tested on originals it has not seen
    """
    if set(rewriters) != set(data) or len(data) < 2:
        raise BadInputError(
            "too-few-data-sets", "the matrix needs at least two data sets, and for each one the model pre-trained on it"
        )
    names = tuple(data)
    cells = []
    for pretrained in names:
        for rewritten in names:
            originals = list(data[rewritten])
            outputs = list(rewriters[pretrained](originals))
            if len(outputs) != len(originals):
                raise BadInputError(
                    "wrong-number-of-outputs",
                    "the model '{pretrained}' must give one output for each text",
                    pretrained=pretrained,
                )
            score = None if labels is None else downstream_f1(outputs, originals, labels[rewritten], seed=seed)
            repeated = repeats(outputs, originals, list(data[pretrained]))
            cells.append(MatrixCell(pretrained, rewritten, bleu(outputs, originals), score, repeated))
            if progress:
                progress(len(cells), len(names) ** 2)
    return Matrix(names, tuple(cells))


def downstream_f1(outputs: Sequence[str], originals: Sequence[str], labels: Sequence[str], *, seed: int = 0) -> float:
    """Macro-F1 over all classes: logistic regression on word counts, trained on two thirds of the outputs, tested on
    the originals of the others."""
    require("sklearn", extra="audit", purpose="training a classifier")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    check_paired(originals, labels)
    order = public_generator(seed).permutation(len(originals))
    train, test = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    if len({labels[i] for i in train}) < 2:
        raise BadInputError("too-few-classes", "a downstream task needs at least two classes: give labels that differ")
    words = CountVectorizer(analyzer=split)
    features = words.fit_transform([outputs[i] for i in train])
    model = LogisticRegression(max_iter=500).fit(features, [labels[i] for i in train])
    guessed = model.predict(words.transform([originals[i] for i in test]))
    return float(f1_score([labels[i] for i in test], guessed, average="macro", zero_division=0))


# For a report -----------------------------------------------------------------------------------------------------


def matrix_section(matrix: Matrix) -> Section:
    """The matrix, the gap, and what it means."""
    findings = []
    for name in matrix.names:
        gap = matrix.gap(name)
        light = Light.RED if gap > WIDE_GAP else Light.GREEN
        cross = max((c for c in matrix.cells if c.rewritten == name and not c.same), key=lambda c: c.bleu)
        sentence = (
            f"Pre-trained on '{name}' itself, the model rewrites it with BLEU {matrix.cell(name, name).bleu:.1f}; "
            f"pre-trained on '{cross.pretrained}', with {cross.bleu:.1f}. The gap of {gap:.1f} comes from having seen "
            f"the data in pre-training. Of {cross.repeats.outputs:,} outputs of the cross model, "
            f"{cross.repeats.nearer:,} lie nearer to its own pre-training text than to the input and "
            f"{cross.repeats.strayed:,} are copies of it."
        )
        numbers = {
            "gap_bleu": gap,
            "gap_macro_f1": _known(matrix.gap(name, "macro_f1")),
            "strayed": cross.repeats.share,
        }
        why = f"Red: the gap exceeds {WIDE_GAP:g} BLEU, so results of the same-data model say nothing about new text."
        findings.append(Finding(f"Pre-training on '{name}'", light, sentence, why, numbers=numbers))
    rows = [
        (c.pretrained, c.rewritten, c.bleu, c.macro_f1, c.repeats.nearer, c.repeats.strayed, c.repeats.outputs)
        for c in matrix.cells
    ]
    table = Table(
        "Who rewrites what",
        ("pre-trained on", "rewrites", "BLEU", "macro-F1", "nearer to pre-training text", "copies of it", "texts"),
        rows,
    )
    text = "A rewriting model that was pre-trained on the text it rewrites repeats it; noise-free, all four pairs."
    return Section("Memorization: same versus cross data", text, findings, (table,))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def memorization_section(
    seen: Repeats, unseen: Repeats, bleu_seen: float, bleu_unseen: float, *, unseen_texts: Sequence[str] = (),
    outputs: Sequence[str] = (),
) -> Section:  # fmt: skip
    """One model: what it makes of texts it was pre-trained on and of texts it was not."""
    gap = bleu_seen - bleu_unseen
    light = Light.RED if unseen.share > 0.05 else Light.AMBER if gap > WIDE_GAP else Light.GREEN
    sentence = (
        f"Texts of the pre-training come back with BLEU {bleu_seen:.1f}, others with {bleu_unseen:.1f} (gap "
        f"{gap:.1f}). {unseen.strayed:,} of {unseen.outputs:,} unseen texts are answered with a pre-training sentence "
        "instead of a rewriting."
    )
    why = (
        "Red: more than 5 % of the answers to unseen texts are pre-training sentences. Amber: pre-training texts come "
        f"back better by more than {WIDE_GAP:g} BLEU, so a test on them flatters the model. Both only matter if the "
        "pre-training text is private; a model of 'tacit pretrain' is declared to be trained on public text."
    )
    numbers = {
        "bleu_seen": bleu_seen, "bleu_unseen": bleu_unseen, "gap": gap, "strayed": unseen.strayed,
        "outputs": unseen.outputs, "copies": unseen.copies,
    }  # fmt: skip
    order = sorted(range(len(outputs)), key=lambda i: unseen.nearest[i][0] - unseen.nearest[i][1])[:10]
    table = Table(
        "Answers closest to the pre-training text",
        ("text", "answer", "nearest pre-training sentence", "similarity to it", "similarity to the text"),
        [
            (unseen_texts[i], outputs[i], unseen.nearest[i][2], unseen.nearest[i][1], unseen.nearest[i][0])
            for i in order
        ],
        private=True,
    )
    return Section(
        "Memorization",
        "Whether the rewriting model answers with sentences of its pre-training text.",
        (Finding("Memorization", light, sentence, why, numbers=numbers),),
        (table,) if order else (),
    )
