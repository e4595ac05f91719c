"""Mask inference with models that know a language exactly: words follow each other in a circle.

On unchanged text such a model is always right where it has a left neighbor; on uniformly random words it is right by
chance. Seeds are fixed; the chance end allows five standard errors (false-alarm rate below 1e-6).
"""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.auditing.text.mask_inference import candidate_words, guesses, infer_masked, load, sample_positions, section  # noqa: E402
from tacit.auditing.text.pairs import TextPairs  # noqa: E402
from tacit.documents.language_models import CausalModel, MaskedModel  # noqa: E402
from tacit.errors import BadInputError  # noqa: E402
from tacit.noise.source import public_generator  # noqa: E402
from tests.documents.test_language_models import tiny, words_tokenizer  # noqa: E402

CIRCLE = ["red", "green", "blue", "gold", "pink", "gray", "teal", "lime"]


class Circle(torch.nn.Module):
    """Knows that after each word comes the next one of the circle, and nothing else."""

    def __init__(self, first: int, pieces: int, *, masked: bool) -> None:
        super().__init__()
        self.config = SimpleNamespace(model_type="circle", max_position_embeddings=512)
        self.first, self.pieces, self.masked = first, pieces, masked

    def get_output_embeddings(self):
        return torch.nn.Linear(1, self.pieces)

    def forward(self, input_ids, attention_mask=None, past_key_values=None):
        known = torch.roll(input_ids, 1, dims=1) if self.masked else input_ids
        follower = self.first + (known - self.first + 1) % len(CIRCLE)
        return SimpleNamespace(logits=torch.nn.functional.one_hot(follower, self.pieces).float())


def circle_model(kind: str):
    if kind == "masked":
        tokenizer = words_tokenizer(" ".join(CIRCLE), unk_token="[UNK]", pad_token="[PAD]", mask_token="[MASK]")
        return MaskedModel(Circle(3, 11, masked=True), tokenizer, name="circle", source="made in a test")
    tokenizer = words_tokenizer(" ".join(CIRCLE), unk_token="[UNK]", pad_token="[PAD]", eos_token="[END]")
    return CausalModel(Circle(3, 11, masked=False), tokenizer, name="circle", source="made in a test")


def circles(rows: int = 150, length: int = 12) -> list[str]:
    starts = public_generator(1).integers(0, 8, size=rows)
    return [" ".join(CIRCLE[(start + i) % 8] for i in range(length)) for start in starts]


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_both_ends(kind: str):
    originals = circles()
    model = circle_model(kind)
    same = infer_masked(TextPairs(originals, originals), model, tokens=1_000)
    assert same.recovered.rate == same.recovered.ceiling > 0.85
    assert same.unchanged == 1.0
    generator = public_generator(2)
    noise = [" ".join(generator.choice(CIRCLE, size=12)) for _ in originals]
    lost = infer_masked(TextPairs(originals, noise), model, tokens=1_000)
    assert lost.recovered.ceiling == same.recovered.ceiling
    assert abs(lost.recovered.rate - 1 / 8) < 5 * math.sqrt(1 / 8 * 7 / 8 / 1_000)
    assert lost.recovered.cases == 1_000


def test_half_of_the_words_changed_lies_between_and_is_quoted_privately():
    originals = circles()
    generator = public_generator(3)
    mixed = [
        " ".join(word if generator.random() < 0.5 else str(generator.choice(CIRCLE)) for word in text.split())
        for text in originals
    ]
    inference = infer_masked(TextPairs(originals, mixed), circle_model("masked"), tokens=800)
    assert 1 / 8 < inference.recovered.low < inference.recovered.high < inference.recovered.ceiling
    shown = section([inference])
    assert shown.tables[1].private
    for row, original, released in inference.examples:
        assert original != released
        assert original in originals[row - 1]


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_guess_does_not_depend_on_the_batch(kind: str):
    """Real architectures: each position alone gives what the whole batch gives."""
    model = tiny(kind)
    originals = ["the bus was late again .", "a small museum near the river", "we have two of them , she said"]
    positions, _ = sample_positions(TextPairs(originals, originals), 100)
    tokens = {row: text.split() for row, text in enumerate(originals)}
    together = guesses(model, tokens, positions)
    assert together == [guesses(model, tokens, [position])[0] for position in positions]
    ids, words = candidate_words(model)
    assert len(ids) == len(words)
    assert set(together) <= set(words)


def test_a_model_is_loaded_by_its_kind(tmp_path: Path):
    for kind, expected in (("bert", "masked"), ("gpt2", "causal")):
        model = tiny(kind)
        model.model.save_pretrained(tmp_path / kind)
        model.tokenizer.save_pretrained(tmp_path / kind)
        assert load(tmp_path / kind).kind == expected
    with pytest.raises(BadInputError, match="no model folder"):
        load(tmp_path / "missing")


def test_rows_that_do_not_align():
    pairs = TextPairs(["red green", "blue"], ["red", "blue"])
    positions, left_out = sample_positions(pairs)
    assert left_out == 1
    assert {position.word for position in positions} == {"blue"}
    with pytest.raises(BadInputError, match="as many words"):
        sample_positions(TextPairs(["red green"], ["red"]))


def test_the_sample_is_spread_over_rows_and_repeatable():
    pairs = TextPairs(circles(), circles())
    first, _ = sample_positions(pairs, 300, seed=4)
    again, _ = sample_positions(pairs, 300, seed=4)
    assert first == again
    assert len(first) == 300
    assert max(np.bincount([position.row for position in first])) <= 10
