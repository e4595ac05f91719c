"""A corpus by matching, in Python: rows in memory, sketches that exist, and what is refused."""

import csv
import warnings

import pytest

import tacit
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.fields import USUAL_POOLS
from tacit.jobs.synthesize_config import MatchingConfig

SENTENCES = {
    "weather": ["Will it rain in Paris tomorrow?", "It is snowing again.", "How warm is it in Rome?"],
    "music": ["Play a song by Bach.", "Turn the volume up.", "I like this guitar solo."],
}
ROWS = [{"text": text, "intent": label} for label, texts in SENTENCES.items() for text in texts * 100]
OPTIONS = {"label_column": "intent", "labels": list(SENTENCES), "epsilon": 2.0, "rows": 200}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matching")
    return tacit.synthesize(ROWS, output=folder / "out.csv", sample_seed=1, **OPTIONS)


def test_rows_card_sketch_and_attribution_lie_beside_each_other(made):
    with made.output.open() as file:
        assert list(csv.DictReader(file)) == made.rows
    assert set(made.columns["intent"]) == set(SENTENCES)
    beside = {path.name for path in made.output.parent.iterdir()}
    assert {"out.csv.card.json", "out.csv.card.md", "out.csv.ATTRIBUTION.txt", "out-sketch.tacit"} <= beside
    assert (made.guarantee.epsilon, made.card.made_by["job"]) == (2.0, "synthesize")
    assert made.guarantee.unit.value == "record"


def test_no_private_sentence_is_repeated_that_is_not_public(made):
    from tacit.matching.pool import load_pool
    from tacit.matching.subjects import without_subjects

    sentences = set(without_subjects(made.texts, list(SENTENCES)))
    assert sentences <= {text for name in USUAL_POOLS for text in load_pool(name).sentences}


def test_a_sketch_gives_more_rows_without_the_private_ones(made, tmp_path, small_pool):
    more = tacit.synthesize(
        from_sketch=made.sketch_path, rows=300, output=tmp_path / "more.csv", label_column=None, pools=[str(small_pool)]
    )
    assert abs(len(more) - 300) <= 2
    assert (more.guarantee.epsilon, more.guarantee.delta) == (made.guarantee.epsilon, made.guarantee.delta)
    assert set(more.columns) == {"text", "intent"}


def test_what_was_paid_for_is_kept_and_not_paid_twice(made, tmp_path):
    output = tmp_path / "again.csv"
    with pytest.raises(BadInputError) as error:
        tacit.synthesize(ROWS, output=output, keep_sketch=made.sketch_path, **OPTIONS)
    assert error.value.code == "sketch-exists"
    assert not output.exists()


def test_topics_take_the_place_of_labels(tmp_path, small_pool):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = [row["text"] for row in ROWS]
        corpus = tacit.synthesize(
            texts, epsilon=2, topics=4, rows=100, output=tmp_path / "topics.csv", pools=[str(small_pool)]
        )
    assert set(corpus.columns) == {"text", "topic"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"data": None}, "rows-or-sketch"),
        ({"from_sketch": "s.tacit"}, "rows-or-sketch"),
        ({"epsilon": None}, "missing-epsilon"),
        ({"data": None, "from_sketch": "s.tacit"}, "budget-of-existing-sketch"),
        ({"labels": ()}, "labels-of-one-kind"),
        ({"by": "training"}, "bad-option"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, code):
    with pytest.raises(BadParameterError) as error:
        MatchingConfig(**{"data": ROWS, **OPTIONS, **options})
    assert error.value.code == code


def test_a_missing_pool_is_refused_before_anything_is_spent(tmp_path):
    with pytest.raises(BadInputError) as error:
        tacit.synthesize(ROWS, output=tmp_path / "out.csv", pools=["no-such-pool"], **OPTIONS)
    assert error.value.code == "no-such-pool"
    assert not list(tmp_path.iterdir())
