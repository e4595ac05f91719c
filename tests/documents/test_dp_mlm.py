"""DP-MLM: the exact law of whole outputs for texts of equal and of different length, and known wrong variants.

False-alarm rate of the statistical test: 1e-6, with a fixed seed.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.catalog import build, find  # noqa: E402
from tacit.documents.dp_mlm import DPMLM  # noqa: E402
from tacit.documents.language_models import LogitInterval, MaskedModel  # noqa: E402
from tacit.documents.paraphrase_loss import token_loss  # noqa: E402
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError  # noqa: E402
from tacit.guarantee import Adjacency, Notion, Unit  # noqa: E402
from tacit.noise.source import Source  # noqa: E402
from tests.documents.test_language_models import bert, tiny, words_tokenizer  # noqa: E402

FALSE_ALARM = 1e-6
INTERVAL = LogitInterval(-4.0, -0.7)
TWO = ("red green", "blue blue", "gold red")
ANY = ("", "red", "red green", "blue blue blue blue")


def four_words():
    """Four words come out; the law of two positions can be written down."""
    tokenizer = words_tokenizer(
        "red green blue gold", unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip
    from tokenizers.processors import TemplateProcessing

    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return MaskedModel(bert(len(tokenizer), seed=9), tokenizer, name="four words", source="made in a test")


def small(epsilon: float = 3.0, **more) -> DPMLM:
    settings = {"model": four_words(), "tokens": 2, "interval": INTERVAL, "seed": 0} | more
    return DPMLM(epsilon=epsilon, **settings)


def tiny_mlm(epsilon: float = 60.0, **more) -> DPMLM:
    return DPMLM(epsilon=epsilon, **({"model": tiny("bert"), "tokens": 6, "seed": 1} | more))


def law_of_outputs(mechanism: DPMLM, text: str) -> dict[tuple[int, ...], float]:
    """Exact probability of every sequence that can be drawn for this text; -1 is "nothing"."""
    hidden = mechanism.length == "hidden"
    outcomes = [*mechanism.language_model.support.tolist(), *([-1] if hidden else [])]
    steps = mechanism.tokens if hidden else len(mechanism.language_model.tokens(text, mechanism.tokens))
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(steps):
        law = {
            (*before, y): p * q
            for before, p in law.items()
            for y, q in zip(outcomes, mechanism.law(text, before), strict=True)
        }
    return law


def loss(first: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float]) -> float:
    assert first.keys() == other.keys()
    return max(abs(math.log(first[key] / other[key])) for key in first)


# The law ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", ["pair", "single"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
def test_hidden_length_protects_any_two_texts(epsilon, context):
    mechanism = small(epsilon, context=context)
    laws = [law_of_outputs(mechanism, text) for text in ANY]
    bound = mechanism.promise().exponent()
    assert bound == pytest.approx(epsilon, abs=1e-5)
    for first_law, other in itertools.combinations(laws, 2):
        assert sum(first_law.values()) == pytest.approx(1.0)
        assert 0.0 < loss(first_law, other) <= bound


@pytest.mark.parametrize("context", ["pair", "single"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
def test_visible_length_protects_texts_of_the_same_length(epsilon, context):
    mechanism = small(epsilon, length="visible", context=context)
    laws = [law_of_outputs(mechanism, text) for text in TWO]
    for first_law, other in itertools.combinations(laws, 2):
        assert 0.0 < loss(first_law, other) <= mechanism.promise().exponent()
    short = [law_of_outputs(mechanism, text) for text in ("red", "blue")]
    assert loss(*short) <= epsilon / 2.0 + 1e-5  # one token of two
    assert set(law_of_outputs(mechanism, "red")).isdisjoint(laws[0])  # the length is visible, and the card says so


def test_one_changed_token_is_not_protected_by_the_budget_of_one_token(monkeypatch):
    """What papers print per token does not hold: one token can move the law at every position."""
    mechanism = small(16.0, length="visible", interval=LogitInterval(-3.0, -0.1))
    red = mechanism.language_model.tokens("red", 1)[0]

    def fill(working, position, length, beside):
        """A model that fills every gap with gold if the document begins with red, and with green if not."""
        return np.array([[-50, -50, -50, 0] if ids[0] == red else [-50, 0, -50, -50] for ids in beside], dtype=float)

    monkeypatch.setattr(mechanism.language_model, "fill", fill)
    worst = loss(law_of_outputs(mechanism, "red blue"), law_of_outputs(mechanism, "gold blue"))
    assert 2.0 * mechanism.epsilon_token - 1.0 < worst <= mechanism.promise().exponent()
    assert worst > mechanism.epsilon_token + 7.0


@pytest.mark.parametrize("length", ["hidden", "visible"])
def test_draws_follow_the_law(length):
    mechanism = small(9.0, length=length, batch_size=500)
    law = law_of_outputs(mechanism, "red green")
    expected: dict[str, float] = {}
    for key, p in law.items():
        text = mechanism.language_model.text([token for token in key if token >= 0])
        expected[text] = expected.get(text, 0.0) + p
    read = [*["red green"] * 9, "blue"] * 112
    released = mechanism.rewrite_texts(read, Source.from_test_seed(5)).texts
    texts = [text for text, original in zip(released, read, strict=True) if original == "red green"]
    observed = np.array([texts.count(text) for text in expected])
    assert observed.sum() == len(texts)
    assert chisquare(observed, np.array(list(expected.values())) * len(texts)).pvalue > FALSE_ALARM


def test_neighbors_in_a_batch_do_not_show():
    mechanism = tiny_mlm()
    model = mechanism.language_model
    document = model.tokens("the bus was late", 6)
    rows = [
        mechanism.weights([document, model.tokens(other, 6)], [document[:2], [7, 8]], 2)[0]
        for other in ("", "rain", "the company will open two new offices")
    ]
    assert all(np.array_equal(row, rows[0]) for row in rows)


def test_percentiles_taken_as_shares_make_the_law_uniform():
    """The published calibration asks for percentile 0.99 of 100 as the upper end: nearly all logits clip to it."""
    mechanism = tiny_mlm(epsilon=60.0)
    rows = np.concatenate(list(mechanism.language_model.public_scores(["the bus was late", "it may rain"], None, 4)))
    wrong = LogitInterval(float(rows.min()), float(np.percentile(rows, 0.99)))

    def entropy(interval):
        law = tiny_mlm(epsilon=60.0, interval=interval, length="visible").law("the bus was late")
        return float(-(law * np.log(law)).sum() / math.log(len(law)))

    assert entropy(wrong) > 0.97
    assert entropy(mechanism.clipping) < 0.9


# What comes out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", ["hidden", "visible"])
def test_any_text_is_rewritten(length):
    mechanism = tiny_mlm(length=length, batch_size=3)
    release = mechanism.rewrite(["", "word " * 100_000, "\ud800", "rain", "[MASK] [SEP] zzz"])
    assert len(release.texts) == 5
    assert release.units == [1] * 5
    assert not any("[" in text for text in release.texts)
    if length == "visible":
        assert release.texts[0] == ""


def test_a_large_budget_keeps_the_length():
    mechanism = tiny_mlm(epsilon=1e6)
    model = mechanism.language_model
    for text in ("", "rain", "the bus was late"):
        length = min(6, len(model.tokens(text, 6)))
        law = mechanism.law(text, [5] * length)
        assert length == 6 or law[-1] > 0.99


def test_all_tokens_are_treated_alike():
    """Stop words, punctuation, capitals and unknown words are drawn like all others."""
    mechanism = tiny_mlm(epsilon=6.0)
    for text in ("the", ",", "The", "\u4e2d"):
        assert mechanism.law(text).min() > 0.0
        assert mechanism.law(text).shape == (len(mechanism.language_model.support) + 1,)


# The promise --------------------------------------------------------------------------------------------------------


def test_the_card():
    hidden, visible = tiny_mlm(seed=None, epsilon=12.0).guarantee(), tiny_mlm(length="visible", epsilon=12.0, seed=None)
    assert (hidden.notion, hidden.unit, hidden.adjacency) == (Notion.PURE, Unit.DOCUMENT, Adjacency.ANY_TWO)
    assert hidden.epsilon == pytest.approx(12.0)
    assert hidden.parameters["epsilon per token"].startswith("2,")
    assert visible.guarantee().adjacency is Adjacency.EQUAL_LENGTH
    assert any("how many tokens" in item for item in visible.guarantee().not_covered)
    assert any("no better guarantee than the whole text" in item for item in hidden.assumptions)
    assert [item.public for item in hidden.provenance] == [True, True]
    assert not tiny_mlm(seed=3).rewrite("rain").guarantee.is_private
    large = tiny_mlm(epsilon=6000.0, seed=None)
    assert large.guarantee().epsilon == pytest.approx(6 * token_loss(1000.0, large.outcomes))


def test_bad_parameters():
    for parameters, sentence in (
        ({"tokens": 0}, "tokens must be"),
        ({"length": "unknown"}, "length must be one of hidden, visible"),
        ({"context": "all"}, "context must be one of pair, single"),
        ({"interval": "1"}, "LOW:HIGH"),
        ({"epsilon": 0.0}, "epsilon must be positive"),
    ):
        with pytest.raises(BadParameterError, match=sentence):
            tiny_mlm(**parameters)
    with pytest.raises(BadParameterError, match="lower"):
        tiny_mlm(tokens=100).prepare()
    with pytest.raises(NoGuaranteeError, match="private"):
        tiny_mlm(interval=LogitInterval(-5.0, -1.0, source="our letters", public=False))


def test_another_kind_of_model_is_refused(tmp_path):
    tiny("llama").model.save_pretrained(tmp_path / "writer")
    tiny("llama").tokenizer.save_pretrained(tmp_path / "writer")
    with pytest.raises(BadInputError, match="fills no gaps"):
        DPMLM(epsilon=100.0, model=str(tmp_path / "writer")).prepare()


def test_it_is_built_from_strings():
    assert find("dp-mlm") is DPMLM
    made = build("dp-mlm", {"epsilon": "320", "model": "some/folder", "tokens": "16", "length": "visible"})
    assert isinstance(made, DPMLM)
    assert (made.model, made.tokens, made.length) == ("some/folder", 16, "visible")
