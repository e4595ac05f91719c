"""Collapse: the published tables that hid it are flagged, healthy ones are not."""

from __future__ import annotations

import math

import pytest

from tacit.evaluation.collapse import (
    at_floor,
    empty_output,
    flags_of_confusion,
    is_loop,
    one_output,
    scheme_flags,
    tag_scheme,
    text_flags,
    token_loops,
)
from tacit.evaluation.scores import Floor
from tacit.report import Light
from tests.evaluation.test_scores import CONLL, TABLES

HEALTHY = [f"text number {i} about {word}" for i, word in enumerate(["rain", "soup", "trains", "music"] * 5)]


def names(flags):
    return [flag.name for flag in flags]


def test_published_classifiers_that_voted_with_the_majority():
    flagged = flags_of_confusion([[2, 12497], [3, 12497]], ("pos", "neg"))
    assert names(flagged) == ["Majority voting"]
    assert flagged[0].severe
    assert flagged[0].finding("x").light is Light.RED
    assert flags_of_confusion([[21838, 3162], [3863, 21137]], ("pos", "neg")) == []


def test_published_taggers():
    assert names(flags_of_confusion(TABLES["T4.11"], CONLL, "tag")) == ["All one tag"]
    assert names(flags_of_confusion(TABLES["T4.10"], CONLL, "tag")) == ["Tags never predicted"]
    assert flags_of_confusion(TABLES["T4.9"], CONLL, "tag") == []


def test_a_skewed_but_working_classifier_is_no_majority_voter():
    assert flags_of_confusion([[970, 5], [5, 20]], ("no", "yes")) == []
    assert names(flags_of_confusion([[975, 0], [25, 0]], ("no", "yes"))) == [
        "Majority voting",
        "Classes never predicted",
    ]


def sequences(counts, begins: str):
    """Entities of the counted length, written in a scheme: `begins` is the prefix of their first token."""
    results = []
    for kind, (first, inside) in counts.items():
        results += [["O", f"{begins}-{kind}", "I-" + kind, "O"]] * inside + [["O", f"{begins}-{kind}", "O"]] * (
            first - inside
        )
    return results


def test_published_splits_in_two_schemes():
    """CoNLL 2003 as used in print: training tags with 6,600 B-PER, test tags with none."""
    train = sequences({"PER": (660, 452), "ORG": (632, 370)}, "B")
    test = [*sequences({"PER": (160, 117), "ORG": (150, 99)}, "I"), ["I-ORG", "B-ORG"]]
    assert (tag_scheme(train), tag_scheme(test)) == ("IOB2", "IOB1")
    (flag,) = scheme_flags(train, test)
    assert "IOB2" in flag.sentence
    assert "IOB1" in flag.sentence
    assert list(scheme_flags(train, train)) == []


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ([["B-A", "I-A", "O"]] * 60 + [["O", "I-A"]], "IOB2"),
        ([["B-A", "O"], ["O", "I-A"]], "mixed"),
        ([["I-A", "I-A"], ["O", "I-B"]], "IO"),
        ([["B-A", "E-A"], ["S-B", "O"]], "BIOES"),
        ([["NOUN", "VERB"]], "plain"),
    ],
)
def test_schemes(tags, scheme):
    assert tag_scheme(tags) == scheme


def test_healthy_releases_have_no_flag_and_collapsed_ones_do():
    assert text_flags(HEALTHY, HEALTHY[::-1]) == []
    assert names(text_flags(HEALTHY, [""] * len(HEALTHY))) == ["Empty output", "One output for all"]
    assert empty_output(HEALTHY, ["", ".", *HEALTHY[2:]]).severe is False
    assert empty_output(HEALTHY, ["..."] * len(HEALTHY)).severe
    assert one_output(HEALTHY, ["the same for all"] * len(HEALTHY)).share == 1.0
    assert one_output(["yes"] * 20, ["no"] * 20) is None  # the originals did not differ either
    assert token_loops(HEALTHY, ["the " * 20] * 3 + HEALTHY[3:]).severe is False


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        ("the the the the the the the the", True),
        ("i like it i like it i like it i like it i like it", True),
        ("we saw many of of of of of of of of", True),
        ("very very very good and everything else here was fine too", False),
        ("no no no no", False),
        ("the rain in the north of the country went on for the whole night", False),
    ],
)
def test_loops(text, loop):
    assert is_loop(text) is loop


def test_a_score_that_reaches_the_floor():
    floor = Floor(0.3, 0.5)
    assert at_floor(0.49, 0.6, floor).severe
    assert at_floor(0.51, 0.6, floor) is None
    assert at_floor(math.nan, 0.5, floor).severe
