"""Canaries: formats, coins, exposure exact and extrapolated, both ends."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tacit.auditing.models.canaries import (
    WORDS,
    Canary,
    CanaryFormat,
    canary_section,
    exposures,
    insert,
    make_canaries,
    observations,
)
from tacit.auditing.models.canary_files import load_canaries, save_canaries
from tacit.auditing.models.one_run import audit_observations
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import new_source
from tacit.report import Light

CODE = "the code is {digits:3}"


def by_number(texts):
    """A model that likes small numbers: losses are the numbers themselves."""
    return np.array([float(text.split()[-1]) for text in texts])


def test_formats():
    form = CanaryFormat("at {words:2} say {hex:1}{letters:1}")
    assert form.candidates == 64**2 * 16 * 26
    assert len(set(WORDS)) == 64
    assert form.fill(["apple", "lemon", "f", "q"]) == "at apple lemon say fq"
    assert CanaryFormat("{digits:2}").enumerate() == [f"{i:02}" for i in range(100)]
    drawn = form.draw(50, np.random.default_rng(0))
    assert len(set(drawn)) == 50
    for bad in ("no field", "{emoji:3}", "{digits:0}"):
        with pytest.raises(BadParameterError):
            CanaryFormat(bad)
    with pytest.raises(BadParameterError, match="too few"):
        CanaryFormat("{digits:1}").draw(9, np.random.default_rng(0))


def test_canaries_have_coins_and_repeats_and_survive_saving(tmp_path):
    made = make_canaries(400, source=new_source(1), repeats=(1, 10))
    assert len({canary.text for canary in made}) == 400
    assert 150 < sum(canary.included for canary in made) < 250  # false alarm below 1 in a million
    assert {canary.repeats for canary in made} == {1, 10}
    assert all(canary.insertions in (0, canary.repeats) for canary in made)
    training = insert(["a", "b"], made, new_source(2))
    assert len(training) == 2 + sum(canary.insertions for canary in made)
    path = tmp_path / "canaries.jsonl"
    save_canaries(made, path)
    assert load_canaries(path) == made
    with pytest.raises(BadInputError, match="exists: give another name"):
        save_canaries(made, path)
    save_canaries(made[:5], path, force=True)
    assert len(path.read_text().splitlines()) == 5


def test_damaged_canaries(tmp_path):
    path = tmp_path / "c.jsonl"
    with pytest.raises(BadInputError, match="cannot be read"):
        load_canaries(path)
    row = {"text": "a", "format": CODE, "repeats": 1, "included": True}
    for lines, sentence in (
        (["{"], "line 1"),
        ([json.dumps(row), json.dumps({**row, "included": "yes"})], "line 2"),
        ([json.dumps(row), json.dumps({**row, "included": False})], "twice"),
        ([json.dumps(row)], "some that were left out"),
    ):
        path.write_text("\n".join(lines))
        with pytest.raises(BadInputError, match=sentence):
            load_canaries(path)
    for count, repeats in ((1, (1,)), (4, (0,))):
        with pytest.raises(BadParameterError):
            make_canaries(count, source=new_source(0), repeats=repeats)


def test_exposure_by_enumeration_is_exact():
    canaries = [Canary(f"the code is {number:03}", CODE, 1, True) for number in (0, 1, 499, 999)]
    (exposure,) = exposures(by_number, canaries, source=new_source(0))
    assert exposure.method == "enumerated"
    assert exposure.fit is None
    expected = [math.log2(997 / rank) for rank in (1, 1, 498, 997)]  # among 996 candidates that were not inserted
    np.testing.assert_allclose([row.exposure for row in exposure.canaries], expected, atol=1e-9)


def test_a_left_out_canary_is_one_of_the_candidates():
    canaries = [Canary(f"the code is {number:03}", CODE, 1, False) for number in (0, 999)]
    (exposure,) = exposures(by_number, canaries, source=new_source(0))
    np.testing.assert_allclose([row.exposure for row in exposure.canaries], [math.log2(1000), 0.0], atol=1e-9)


def test_a_model_without_an_opinion_exposes_nothing():
    canaries = [Canary(f"the code is {number:03}", CODE, 1, True) for number in range(5)]
    (exposure,) = exposures(lambda texts: np.zeros(len(texts)), canaries, source=new_source(0))
    assert [row.exposure for row in exposure.canaries] == [0.0] * 5


def test_exposure_by_extrapolation_is_near_the_exact_one():
    """Losses that are normal over candidates; a canary 4 standard deviations below is exposed by 14.9 bits."""
    pattern = "my secret number is {digits:9}"
    canary = make_canaries(40, source=new_source(3), pattern=pattern)
    special = {canary[0].text: -4.0, canary[1].text: -2.0}

    def losses(texts):
        numbers = [np.random.default_rng(int(text.split()[-1])).normal() for text in texts]
        return np.array([special.get(text, number) for text, number in zip(texts, numbers, strict=True)])

    (exposure,) = exposures(losses, canary, source=new_source(4), sampled=2_000)
    assert exposure.method == "extrapolated"
    assert exposure.fit is not None
    assert exposure.fit > 0.01
    assert exposure.canaries[0].exposure == pytest.approx(14.95, abs=2.5)
    assert exposure.canaries[1].exposure == pytest.approx(5.46, abs=0.5)
    # What the sample proves: none of 2,000 candidates is as low, so the share is below 3 in 2,000.
    assert exposure.canaries[0].at_least == pytest.approx(math.log2(2_000 / 3), abs=0.1)
    assert all(row.at_least <= row.exposure + 2.5 for row in exposure.canaries)
    assert np.median([row.exposure for row in exposure.canaries[2:]]) < 3


def test_the_light_depends_on_what_chance_allows():
    generator = np.random.default_rng(5)
    numbers = generator.permutation(1000)[:40]
    coins = generator.random(40) < 0.5
    canaries = [Canary(f"the code is {number:03}", CODE, 1, bool(coin))
                for number, coin in zip(numbers, coins, strict=True)]  # fmt: skip
    inserted = {canary.text for canary in canaries if canary.included}

    def knows(texts):
        return np.array([-5.0 if text in inserted else by_number([text])[0] for text in texts])

    red = canary_section(exposures(knows, canaries, source=new_source(0))).findings[0]
    assert red.light is Light.RED
    assert "exact, by enumeration" in red.sentence
    assert red.numbers["exposed"] == len(inserted)
    assert red.numbers["highest"] == pytest.approx(math.log2(1001 - len(inserted)))
    shuffled = np.random.default_rng(6).permutation(1000)

    def ignorant(texts):
        return np.array([float(shuffled[int(text.split()[-1])]) for text in texts])

    green = canary_section(exposures(ignorant, canaries, source=new_source(0))).findings[0]
    assert green.light is Light.GREEN
    assert audit_observations(observations(ignorant, canaries)).epsilon == 0.0
    assert audit_observations(observations(knows, canaries)).epsilon > 1.0


def test_an_overfit_language_model_knows_its_canaries_and_an_untrained_one_does_not():
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tacit.auditing.models.scores import CausalScorer
    from tests.auditing.test_models_scores import gpt2_for, random_texts

    pattern = "the code is {words:2}"
    canaries = make_canaries(40, source=new_source(7), pattern=pattern, repeats=(1, 4))
    training = insert(random_texts(40, seed=8), canaries, new_source(9))
    for epochs, light in ((60, Light.RED), (0, Light.GREEN)):
        scorer = CausalScorer(*gpt2_for(training, epochs=epochs), "tiny")

        def losses(texts, scorer=scorer):
            return scorer.losses(texts).total

        (exposure,) = exposures(losses, canaries, source=new_source(0))
        assert exposure.method == "enumerated"
        section = canary_section([exposure])
        assert section.findings[0].light is light
        bound = audit_observations(observations(losses, canaries)).epsilon
        assert (bound > 0.7) if epochs else (bound == 0.0)
        if epochs:
            four = [row.exposure for row in exposure.canaries if row.canary.insertions == 4]
            none = [row.exposure for row in exposure.canaries if row.canary.insertions == 0]
            assert np.median(four) > np.median(none) + 3
