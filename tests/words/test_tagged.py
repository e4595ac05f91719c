"""Words of the same part of speech: metric privacy within a public tag, and nothing between tags."""

from __future__ import annotations

import numpy as np
import pytest

from tacit import build
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency
from tacit.noise.source import Source
from tests.conftest import small_table
from tests.words.exactness import euclidean, worst_excess
from tests.words.test_exact import assert_follows

ALL = np.arange(40)


@pytest.fixture
def tags(tmp_path):
    path = tmp_path / "tags.tsv"
    lines = [f"w{i}\t{('NOUN', 'VERB', 'ADJ')[i % 3]}" for i in range(36)]
    path.write_text("\n".join([*lines, "w36\tRARE", "w0\tVERB", ""]), encoding="utf-8")
    return str(path)


def tagged(tags, **options):
    return build("tagged", {"epsilon": 2.0, "vectors": small_table(40, 3), "tags": tags, "least": 3, **options})


@pytest.mark.parametrize("calibration", ["exact", "textbook"])
@pytest.mark.parametrize("epsilon", [0.2, 2.0, 20.0])
def test_all_triples_of_a_tag_keep_the_bound_and_tags_are_never_left(tags, calibration, epsilon):
    mechanism = tagged(tags, calibration=calibration, epsilon=epsilon)
    law, promise = mechanism.laws(ALL), mechanism.guarantee()
    same = mechanism.set_of[:, None] == mechanism.set_of
    assert ((law > 0) == same).all()
    assert promise.adjacency is Adjacency.SAME_SET
    distances = euclidean(mechanism.table.vectors)
    bound = np.where(same, promise.epsilon * distances + promise.slack, np.inf)
    assert worst_excess(law, bound) <= 1e-9
    assert mechanism.tag_names == ["", "ADJ", "NOUN", "VERB"], "a tag of one word hides nobody"
    assert mechanism.set_of[36] == mechanism.set_of[39] == 0
    assert mechanism.set_of[0] == mechanism.tag_names.index("NOUN"), "the first tag of a word counts"


def test_draws_follow_the_law(tags):
    """Chi-square, false-alarm rate 1e-6."""
    mechanism = tagged(tags)
    drawn = mechanism.draw(np.tile([0, 37], 50_000), Source.from_test_seed(5)).reshape(-1, 2)
    for column, law in enumerate(mechanism.laws(np.array([0, 37]))):
        assert_follows(np.bincount(drawn[:, column], minlength=40), law)


def test_the_card_says_that_the_tag_is_visible(tags):
    release = tagged(tags, seed=3).rewrite(["w0 w1 never-seen"])
    assert len(release.texts[0].split()) >= 3
    promise = tagged(tags).guarantee()
    assert any("tag of every word" in item for item in promise.not_covered)
    assert promise.parameters["best guess"].endswith("of the words of the vocabulary")


def test_lists_that_cannot_be_used(tmp_path, tags):
    broken = tmp_path / "broken.tsv"
    broken.write_text("house NOUN\n")
    with pytest.raises(BadInputError, match="line 1"):
        tagged(str(broken)).prepare()
    broken.write_text("\n")
    with pytest.raises(BadInputError, match="is empty"):
        tagged(str(broken)).prepare()
    with pytest.raises(BadInputError, match="cannot read"):
        tagged(str(tmp_path / "nothing.tsv")).prepare()
