"""Memorization: nearest pre-training sentences, and the direction of the published ADePT matrix."""

from __future__ import annotations

import pytest

pytest.importorskip("sacrebleu")

from tacit.auditing.models.memorization import (
    Matrix,
    MatrixCell,
    bleu,
    downstream_f1,
    matrix_section,
    memorization_matrix,
    memorization_section,
    repeats,
)
from tacit.errors import BadInputError
from tacit.report import Light

FLIGHTS = [f"show {kind} flights from {a} to {b}" for kind in ("cheap", "early", "late", "direct")
           for a in ("boston", "denver", "dallas", "miami") for b in ("newark", "dayton", "reno", "tampa")]  # fmt: skip
MUSIC = [f"{verb} the {what} by {who} in my {room}" for verb in ("play", "stop", "repeat", "find")
         for what in ("song", "album", "track", "concert") for who in ("mozart", "queen", "abba", "bach")
         for room in ("kitchen",)]  # fmt: skip


def test_a_copy_of_pre_training_text_is_told_from_an_answer():
    pretraining = ["the cat sat on the mat today", "we fly to boston on monday morning"]
    originals = ["we fly to boston on monday morning", "book a table for four people now", "rain is expected in town"]
    outputs = [originals[0], "we fly to boston on monday morning", "rain is expected here"]
    repetition = repeats(outputs, originals, pretraining)
    assert (repetition.nearer, repetition.copies, repetition.strayed) == (
        1,
        1,
        1,
    )  # writing the input back is no leak, answering with another text is
    assert repetition.share == pytest.approx(1 / 3)
    assert repetition.nearest[1][2] == pretraining[1]
    assert repeats([], [], pretraining).share == 0.0
    with pytest.raises(BadInputError, match="must align"):
        repeats(["a"], [], pretraining)


def test_the_matrix_and_its_gap():
    def memorizer(known):
        return lambda texts: [text if text in known else known[len(text) % len(known)] for text in texts]

    data = {"flights": FLIGHTS, "music": MUSIC}
    labels = {name: [text.split()[1 if name == "flights" else 0] for text in texts] for name, texts in data.items()}
    rewriters = {name: memorizer(texts) for name, texts in data.items()}
    matrix = memorization_matrix(rewriters, data, labels)
    for name in data:
        assert matrix.cell(name, name).bleu == pytest.approx(100.0)
        assert matrix.cell(name, name).macro_f1 > 0.9
        assert matrix.gap(name) > 90
        assert matrix.gap(name, "macro_f1") > 0.5
    assert matrix.cell("flights", "music").repeats.share == 1.0
    assert matrix.cell("music", "music").repeats.strayed == 0
    section = matrix_section(matrix)
    assert [finding.light for finding in section.findings] == [Light.RED, Light.RED]
    honest = memorization_matrix(dict.fromkeys(data, list), data)
    assert honest.gap("flights") == 0.0
    assert honest.cell("music", "music").macro_f1 is None
    assert matrix_section(honest).findings[0].light is Light.GREEN
    with pytest.raises(BadInputError, match="two data sets"):
        memorization_matrix({"a": list}, {"a": ["x"]})
    with pytest.raises(BadInputError, match="one output for each"):
        memorization_matrix(dict.fromkeys(data, lambda texts: []), data)


def test_the_published_matrix_reads_as_a_leak():
    """Igamberdiev 2023, section 5.4: macro-F1 without noise."""
    none = repeats([], [], ["x"])
    published = {("snips", "snips"): 0.94, ("atis", "snips"): 0.18, ("snips", "atis"): 0.51, ("atis", "atis"): 0.73}
    matrix = Matrix(("snips", "atis"), tuple(MatrixCell(*pair, 0.0, f1, none) for pair, f1 in published.items()))
    assert matrix.gap("snips", "macro_f1") == pytest.approx(0.76)
    assert matrix.gap("atis", "macro_f1") == pytest.approx(0.22)


def test_a_downstream_task_needs_classes():
    pytest.importorskip("sklearn")
    texts = [f"{word} {i}" for i in range(30) for word in ("good", "bad")]
    labels = [text.split()[0] for text in texts]
    assert downstream_f1(texts, texts, labels) == 1.0
    assert downstream_f1(["same"] * len(texts), texts, labels) < 0.5
    with pytest.raises(BadInputError, match="two classes"):
        downstream_f1(texts, texts, ["one"] * len(texts))
    with pytest.raises(BadInputError, match="each text needs one"):
        downstream_f1(texts, texts, labels[1:])


def test_one_model_alone():
    texts, answers = MUSIC[:4], FLIGHTS[:4]
    leaking = memorization_section(
        repeats(FLIGHTS[:4], FLIGHTS[:4], FLIGHTS), repeats(answers, texts, FLIGHTS), 100.0, bleu(answers, texts),
        unseen_texts=texts, outputs=answers,
    )  # fmt: skip
    assert leaking.findings[0].light is Light.RED
    assert leaking.tables[0].private
    fine = memorization_section(
        repeats(FLIGHTS[:4], FLIGHTS[:4], FLIGHTS), repeats(texts, texts, FLIGHTS), 100.0, bleu(texts, texts)
    )
    assert fine.findings[0].light is Light.GREEN


def test_two_tiny_autoencoders_show_the_direction_of_the_published_matrix(tmp_path):
    """Each model rewrites the corpus it was pre-trained on better than the other one does, and answers the other corpus
    with sentences of its own."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.autoencoders.base import Record
    from tacit.documents.autoencoders.vocabulary import train_vocabulary
    from tacit.documents.pretraining import PublicText
    from tacit.documents.pretraining.loop import train
    from tacit.documents.pretraining.plan import PretrainingPlan

    data = {"flights": FLIGHTS, "music": MUSIC}
    rewriters = {}
    for name, texts in data.items():
        torch.manual_seed(0)
        tokenizer = train_vocabulary(texts, 420)
        record = Record(kind="bart", positions=12, corpora=[name], commands=["test"])
        model = BartAutoencoder.create(tokenizer, record, width=32, layers=1, heads=2, feed_forward=64)
        plan = PretrainingPlan(steps=90, batch_size=32, evaluate_every=90, held_out=4, learning_rate=1e-2)
        train(model, PublicText(texts=texts, name=name), plan, tmp_path / name)
        rewriters[name] = lambda queried, model=model: model.decode(model.encode(queried))
    matrix = memorization_matrix(rewriters, data)
    for name in data:
        assert matrix.gap(name) > 30
        other = next(n for n in data if n != name)
        assert matrix.cell(other, name).repeats.nearer > 0.9 * len(data[name])
        assert matrix.cell(name, name).repeats.nearer < 0.5 * len(data[name])
