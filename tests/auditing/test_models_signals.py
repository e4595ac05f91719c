"""RMIA, Min-K%++ and quantile regression: by hand, on a model that knows its texts, and below what a claim allows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.auditing.models.ceilings import allowed_auc, allowed_rate
from tacit.auditing.models.difficulty import difficulty_signals
from tacit.auditing.models.membership import attack
from tacit.auditing.models.rates import auc, auc_interval
from tacit.auditing.models.rmia import rmia_log_ratio, rmia_signals
from tacit.auditing.models.scores import TextLosses


def single(losses: list[float]) -> TextLosses:
    return TextLosses(np.array(losses), np.ones(len(losses), dtype=np.int64))


def test_rmia_by_hand():
    own, reference = single([0.1, 2.0]), single([1.0, 2.0])
    expected = [math.log(math.exp(-a) / ((1.33 * math.exp(-b) + 0.67) / 2)) for a, b in ((0.1, 1.0), (2.0, 2.0))]
    np.testing.assert_allclose(rmia_log_ratio(own, reference), expected)
    inside, outside = rmia_signals(np.array([3.0, 1.0]), np.array([2.0, 0.0]))
    assert inside.tolist() == [1.0, 0.5]  # among the four texts, itself included
    assert outside.tolist() == [0.75, 0.25]
    strict, _ = rmia_signals(np.array([3.0, 1.0]), np.array([2.0, 0.0]), gamma=math.exp(1.5))
    assert strict.tolist() == [0.5, 0.0]


def test_what_is_usual_for_a_text_is_learned_from_others():
    """Losses that grow with the length hide members from the loss alone. Without a difference nothing is accused: the
    AUC of 300 against 300 texts leaves .5 +- .08 about once in 1,000."""
    generator = np.random.default_rng(0)

    def side(count: int, known: float):
        lengths = generator.integers(1, 30, size=count)
        texts = [" ".join(generator.choice(["red", "blue", "green", "gray"], size=length)) for length in lengths]
        losses = lengths / 3 + generator.normal(0, 0.2, size=count) - known
        return texts, TextLosses(losses, np.ones(count, dtype=np.int64)), None

    inside, outside = side(300, 0.6), side(300, 0.0)
    assert auc(-inside[1].mean, -outside[1].mean) < 0.62
    assert auc(*difficulty_signals(inside, outside)) > 0.9
    assert abs(auc(*difficulty_signals(side(300, 0.0), outside)) - 0.5) < 0.08


def test_ceilings_are_those_of_the_best_test():
    assert allowed_auc(0.0, 0.0) == 0.5
    assert allowed_rate(0.01, 0.0, 0.0) == pytest.approx(0.01)
    for epsilon, delta in ((1.0, 0.0), (3.0, 1e-3), (0.2, 0.05)):
        grid = np.linspace(0, 1, 2_001)
        rates = [allowed_rate(x, epsilon, delta) for x in grid.tolist()]
        assert allowed_auc(epsilon, delta) == pytest.approx(np.trapezoid(rates, grid), abs=1e-4)
    # Randomized response reaches the ceiling: its ROC curve has the one corner (FPR, TPR) = (1 - q, q).
    q = 1 / (1 + math.exp(-1.0))
    assert allowed_rate(1 - q, 1.0, 0.0) == pytest.approx(q)
    assert allowed_auc(1.0, 0.0) == pytest.approx(q)
    assert allowed_auc(800.0, 0.0) == 1.0


def test_a_model_that_knows_its_texts_is_caught_and_an_untrained_one_is_not():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tacit.auditing.models.min_k import min_k_signal
    from tacit.auditing.models.scores import CausalScorer
    from tests.auditing.test_models_scores import gpt2_for, overfit

    members, others, (model, tokenizer) = overfit()
    scorer = CausalScorer(model, tokenizer, "overfit")
    untrained = CausalScorer(*gpt2_for([], epochs=0, seed=3), "untrained")
    inside, outside = ((list(texts), scorer.losses(texts), untrained.losses(texts)) for texts in (members, others))
    assert auc(min_k_signal(scorer, members), min_k_signal(scorer, others)) > 0.95
    assert auc(*difficulty_signals(inside, outside)) > 0.95
    assert auc(*rmia_signals(rmia_log_ratio(*inside[1:]), rmia_log_ratio(*outside[1:]))) > 0.95
    floor = attack("min-k++", min_k_signal(untrained, members), min_k_signal(untrained, others), confidence=0.999)
    assert floor.auc_low < 0.5 < floor.auc_high


def test_min_k_of_a_text_by_hand():
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tacit.auditing.models.min_k import min_k_signal
    from tacit.auditing.models.scores import CausalScorer
    from tests.auditing.test_models_scores import gpt2_for, random_texts

    scorer = CausalScorer(*gpt2_for([], epochs=0, seed=1), "untrained")
    (text,) = random_texts(1, 5)
    ids = torch.tensor([scorer.tokenizer(text)["input_ids"]])
    logs = scorer.model(input_ids=ids).logits[0, :-1].double().log_softmax(-1).detach().numpy()
    scores = []
    for row, token in zip(logs, ids[0, 1:].tolist(), strict=True):
        mean = (np.exp(row) * row).sum()
        scores.append((row[token] - mean) / math.sqrt((np.exp(row) * (row - mean) ** 2).sum()))
    lowest = sorted(scores)[: max(1, int(0.2 * len(scores)))]
    signal = min_k_signal(scorer, [text, "x"])
    assert signal[0] == pytest.approx(np.mean(lowest), rel=1e-5)
    assert math.isnan(signal[1]) or len(scorer.tokenizer("x")["input_ids"]) > 1


def test_a_model_trained_with_privacy_stays_within_its_card(tmp_path):
    """A folder of the trainer, random split, a fixed seed (which voids its card, so the claim is repeated): nothing is
    refuted, and the best AUC is compatible with the ceiling."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import tacit
    from tacit.jobs.train import TrainClassify, run
    from tacit.training.tasks import Classification
    from tests.documents import test_language_models as tiny_models
    from tests.training.test_run import tiny

    words = ["good", "fine", "great", "happy", "bad", "poor", "awful", "sad", "the", "a", "film"]
    tokenizer = tiny_models.words_tokenizer(" ".join(words), unk_token="[UNK]", pad_token="[PAD]", eos_token="[SEP]")
    tiny(tokenizer, Classification(labels=["neg", "pos"])).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    generator = np.random.default_rng(0)
    rows = [
        {"text": " ".join([*generator.choice(words, size=8), f"n{i}"]), "label": str(generator.choice(["neg", "pos"]))}
        for i in range(160)
    ]
    run(
        TrainClassify(
            data=rows[:80], output=tmp_path / "model", model=str(tmp_path / "tiny"), strategy="full", epsilon=1,
            delta=1e-4, batch=20, epochs=2, length=16, seed=3,
        )
    )  # fmt: skip
    report = tacit.audit_model(
        tmp_path / "model", members=rows[:80], non_members=rows[80:], column="text", label_column="label",
        split="random", claim_epsilon=1, claim_delta=1e-4,
    )  # fmt: skip
    assert not report.refuted
    limits = next(t for section in report.sections for t in section.tables if t.title == "Floors and ceilings")
    best, ceiling = float(limits.rows[2][1]), float(limits.rows[3][1])
    low, _ = auc_interval(best, 80, 80, 0.999)
    assert low <= ceiling
    assert {row[0] for row in report.sections[0].tables[0].rows} == {"loss", "quantile"}
