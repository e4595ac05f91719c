"""Extraction: exact runs and edit distances, and a model that is caught writing what it was trained on."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np
import pytest

from tacit.auditing.models.extraction import compare, extraction_section, sample
from tacit.auditing.models.overlap import Corpus, edits_to_part
from tacit.errors import BadInputError, BadParameterError
from tacit.report import Light


def longest_run(text: str, corpus: list[str]) -> int:
    words = text.split()
    return max(
        (SequenceMatcher(None, words, other.split(), autojunk=False).find_longest_match().size for other in corpus),
        default=0,
    )


def distance_to_part(needle: list[int], text: list[int]) -> int:
    """Straight from the definition: the Levenshtein distance to every part."""

    def levenshtein(a, b):
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, start=1):
            row = [i] + row[:]  # noqa: RUF005
            previous = row[1:]
            new = [i]
            for j, y in enumerate(b, start=1):
                new.append(min(previous[j] + 1, new[j - 1] + 1, previous[j - 1] + (x != y)))
            row = new
        return row[-1]

    parts = [text[i:j] for i in range(len(text) + 1) for j in range(i, len(text) + 1)]
    return min(levenshtein(needle, part) for part in parts)


def test_runs_are_the_longest_common_ones():
    generator = np.random.default_rng(0)
    corpus = [" ".join(generator.choice(list("abcd"), size=12)) for _ in range(30)]
    texts = [" ".join(generator.choice(list("abcde"), size=9)) for _ in range(40)]
    overlaps = Corpus(corpus).overlaps(texts)
    assert [o.run for o in overlaps] == [longest_run(text, corpus) for text in texts]
    for overlap in overlaps:
        assert any(overlap.run_text in text for text in corpus)
        assert overlap.tokens == 9


def test_runs_do_not_cross_texts_and_unknown_words_match_nothing():
    corpus = Corpus(["one two three", "four five six", ""])
    crossing, copy, unknown, empty = corpus.overlaps(["three four", "Four  five SIX", "seven eight", ""])
    assert crossing.run == 1
    assert copy.verbatim
    assert (copy.nearest, copy.distance, copy.similarity) == (1, 0, 1.0)
    assert (unknown.run, unknown.nearest, unknown.similarity) == (0, -1, 0.0)
    assert not empty.verbatim
    assert corpus.tokens == 6


def test_the_edit_distance_is_that_to_the_best_part():
    generator = np.random.default_rng(1)
    for _ in range(30):
        needle = generator.integers(4, size=int(generator.integers(1, 6)))
        text = generator.integers(4, size=int(generator.integers(0, 8)))
        assert edits_to_part(needle, text) == distance_to_part(needle.tolist(), text.tolist())


def test_copies_are_told_from_chance():
    generator = np.random.default_rng(2)
    words = [f"w{i}" for i in range(50)]
    texts = [" ".join(generator.choice(words, size=12)) for _ in range(200)]
    training, control = texts[:100], texts[100:]
    changed = " ".join(["other", *training[1].split()[1:]])
    fresh = [" ".join(generator.choice(words, size=12)) for _ in range(20)]
    comparison = compare([("", text) for text in (training[0], changed, *fresh)], training, control)
    assert [output.text for output in comparison.verbatim] == [training[0]]
    assert {output.text for output in comparison.extracted} == {training[0], changed}
    assert {output.text for output in comparison.near_duplicates} == {training[0], changed}
    assert comparison.chance_run < 6
    section = extraction_section(comparison, training)
    assert section.findings[0].light is Light.RED
    assert section.tables[0].private
    assert section.tables[0].rows[0][-1] == training[0]
    quiet = compare([("", text) for text in fresh], training, control)
    assert extraction_section(quiet, training).findings[0].light is Light.GREEN
    assert quiet.p_value > 0.01


def test_longer_runs_than_chance_are_noticed_before_they_are_copies():
    generator = np.random.default_rng(3)
    words = [f"w{i}" for i in range(300)]
    texts = [" ".join(generator.choice(words, size=20)) for _ in range(200)]
    training, control = texts[:100], texts[100:]
    halves = [" ".join([*a.split()[:4], *b.split()[10:14]]) for a, b in pairwise(training[:40])]
    comparison = compare([("", text) for text in halves], training, control)
    assert comparison.extracted == []
    assert comparison.p_value < 1e-6
    assert extraction_section(comparison, training).findings[0].light is Light.AMBER
    small = compare([("", halves[0])], training, control[:10])
    assert "The control is small" in extraction_section(small, training).findings[0].sentence
    nothing = compare([("", "")], training, control)
    assert "wrote nothing" in extraction_section(nothing, training).findings[0].sentence
    with pytest.raises(BadInputError, match="control"):
        compare([("", "a")], training, [])


@pytest.mark.parametrize("trained", [True, False])
def test_an_overfit_model_writes_its_training_texts_and_an_untrained_one_does_not(trained):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.auditing.test_models_scores import gpt2_for, overfit

    members, others, (model, tokenizer) = overfit()
    if not trained:
        model, tokenizer = gpt2_for([], epochs=0)
    prompts = sorted({text.split()[0] for text in members})[:8]
    written = sample(model, tokenizer, prompts, samples=24, tokens=10, seed=1)
    assert len(written) == 24
    assert [prompt for prompt, _ in written[:3]] == [prompts[0]] * 3
    assert written == sample(model, tokenizer, prompts, samples=24, tokens=10, seed=1)
    comparison = compare(written, list(members), list(others), smallest_run=6)
    if trained:
        assert len(comparison.verbatim) >= 8
        assert extraction_section(comparison, members).findings[0].light is Light.RED
    else:
        assert comparison.extracted == []
        assert extraction_section(comparison, members).findings[0].light is Light.GREEN


def test_sampling_refuses_what_cannot_work():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.auditing.test_models_scores import gpt2_for

    model, tokenizer = gpt2_for([], epochs=0)
    with pytest.raises(BadParameterError, match="at least 1 sample"):
        sample(model, tokenizer, samples=0)
    with pytest.raises(BadInputError, match="shorter one"):
        sample(model, tokenizer, ["apple " * 40], samples=1)
    (pair,) = sample(model, tokenizer, [""], samples=1, tokens=500)  # starts with the token that begins a text
    assert pair[0] == ""
    tokenizer.bos_token = tokenizer.eos_token = None
    model.config.bos_token_id = None
    with pytest.raises(BadInputError, match="give a prompt with prompts"):
        sample(model, tokenizer, [""], samples=1)
