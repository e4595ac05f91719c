"""The page about a corpus by matching: what it shows, and that it knows nothing but what was released."""

import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import tacit
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.jobs import private_report
from tacit.jobs.release_report import SHOWN_ROWS, public_release, release_page
from tacit.jobs.synthesize_config import MatchingConfig
from tacit.matching.artifact import read_sketch
from tacit.matching.cloud_map import cloud_map
from tacit.matching.noise_curve import noise_curve, noisier
from tacit.matching.pool import load_pool
from tacit.matching.proportions import label_proportions
from tacit.matching.sums import rows_in_memory
from tacit.report.release_figures import round_steps

SENTENCES = {
    "weather & <wind>": ["Will it rain in Paris tomorrow?", "It is snowing again.", "How warm is it in Rome?"],
    "music": ["Play a song by Bach.", "Turn the volume up.", "I like this guitar solo."],
    "food": ["Book a table for two.", "The soup is cold.", "I would like a piece of cake."],
}
SECRET = "zanzibarquux"
ROWS = [{"text": f"{text} {SECRET}", "intent": label} for label, texts in SENTENCES.items() for text in texts * 200]


@pytest.fixture(scope="module")
def made(tmp_path_factory, small_pool):
    return tacit.synthesize(
        ROWS, output=tmp_path_factory.mktemp("report") / "out.csv", label_column="intent", labels=list(SENTENCES),
        pools=[str(small_pool)], epsilon=2.0, rows=600, sample_seed=1, report="shareable",
    )  # fmt: skip


@pytest.fixture(scope="module")
def page(made) -> str:
    return made.report_path.read_text()


def test_the_page_lies_beside_the_corpus_and_needs_nothing_else(made, page):
    assert made.report_path == made.output.with_name("out-report.html")
    links = re.findall(r"""(?:src|href)\s*=\s*["']?([^"'\s>]+)""", page)
    assert links == []
    assert "<script" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_the_page_shows_the_promise_the_pictures_and_rows_of_every_label(made, page):
    assert "epsilon 2 per record" in page
    assert page.count('<svg xmlns="http://www.w3.org/2000/svg"') == 3
    for label in SENTENCES:
        own = {row["text"] for row in made.rows if row["intent"] == label}
        shown = Texts.of(page)
        assert label in shown
        assert sum(text in shown for text in own) >= SHOWN_ROWS


def test_no_private_word_is_on_the_page_and_labels_are_escaped(page):
    assert SECRET not in page
    assert "<wind>" not in page
    for drawing in re.findall(r"<svg xmlns.*?</svg>", page, re.DOTALL):
        ET.fromstring(drawing)


def test_the_page_is_a_function_of_the_release_alone(made, page, small_pool):
    """Whatever the private rows were: sketch, pool and corpus give the same page again."""
    sketch, pools = read_sketch(made.sketch_path), [load_pool(small_pool)]
    labels = [row["intent"] for row in made.rows]
    assert release_page(public_release(sketch, pools, made.texts, labels, made.card)) == page


def test_an_existing_page_is_kept_before_anything_is_spent(made, tmp_path):
    (tmp_path / "new-report.html").write_text("mine")
    with pytest.raises(BadInputError) as error:
        tacit.synthesize(from_sketch=made.sketch_path, output=tmp_path / "new.csv", report="shareable")
    assert error.value.code == "file-exists"
    assert [path.name for path in tmp_path.iterdir()] == ["new-report.html"]


def test_the_command_writes_the_page_from_a_sketch(made, tmp_path, capsys, small_pool):
    output = tmp_path / "more.csv"
    assert run_command(
        ["synthesize", "--from", str(made.sketch_path), "-n", "300", "-o", str(output), "--report", "shareable",
         "--pool", str(small_pool)]
    ) == 0  # fmt: skip
    assert "more-report.html" in capsys.readouterr().err
    assert (tmp_path / "more-report.html").exists()


def test_one_label_and_labels_without_rows_have_a_page(tmp_path, small_pool):
    for name, labels in (("single", ["music"]), ("empty", ["music", "nothing"])):
        with warnings.catch_warnings():  # a label without rows may be told apart from noise, or not
            warnings.simplefilter("ignore", TacitWarning)
            made = tacit.synthesize(
                [row for row in ROWS if row["intent"] == "music"], output=tmp_path / f"{name}.csv",
                label_column="intent", labels=labels, epsilon=1.0, rows=100, report="shareable",
                pools=[str(small_pool)],
            )  # fmt: skip
        assert Path(made.report_path).stat().st_size > 5_000


def test_the_private_page_cannot_be_taken_for_the_other(tmp_path, monkeypatch, small_pool):
    monkeypatch.setattr(private_report, "SHADOW_RELEASES", 20)
    made = tacit.synthesize(
        ROWS, output=tmp_path / "out.csv", label_column="intent", labels=list(SENTENCES), epsilon=2.0, rows=300,
        sample_seed=1, report="private", pools=[str(small_pool)],
    )  # fmt: skip
    private, shared = made.private_report_path, made.report_path
    assert private.name == "out-PRIVATE-report.html"
    assert private.stat().st_mode & 0o077 == 0
    words = Texts.of(private.read_text())
    assert "PRIVATE" in words
    assert "Do not share this page" in words
    assert SECRET in words
    assert all(name in words for name in ("words", "letters", "static vectors"))
    assert "guesses in" in words
    others = Texts.of(shared.read_text())
    assert SECRET not in others
    assert "PRIVATE" not in others
    labels = [row["intent"] for row in made.rows]
    release = public_release(read_sketch(made.sketch_path), [load_pool(small_pool)], made.texts, labels, made.card)
    assert release_page(release) == shared.read_text()


def test_a_sketch_has_no_private_page():
    with pytest.raises(BadParameterError) as error:
        MatchingConfig(from_sketch="s.tacit", report="private")
    assert error.value.code == "private-report-of-sketch"


def test_rows_that_are_looked_at_are_drawn_from_the_whole_file(made):
    sketch = read_sketch(made.sketch_path)
    texts = [f"{number}" for number in range(3_000)]
    labels = ["music" if number % 2 else "unknown" for number in range(3_000)]
    held = private_report.held_rows(rows_in_memory(texts, labels, None), sketch, most=500)
    assert len(held.texts) == 500
    assert set(held.labels) == {"music"}
    assert 1_200 < np.mean([int(text) for text in held.texts]) < 1_800
    train, test = held.split()
    assert (len(train), len(test)) == (400, 100)
    assert not set(train.texts) & set(test.texts)


# The numbers --------------------------------------------------------------------------------------------------------


def test_intervals_of_shares_hold_as_often_as_they_say(made):
    """The formula against draws of noise around the released counts, taken as if they were the truth."""
    sketch = read_sketch(made.sketch_path)
    truth = (sketch.counts / sketch.counts.sum()).tolist()
    held = []
    for seed in range(400):
        drawn = replace(noisier(sketch, sketch.noise_variance + 100.0, seed), noise_variance=100.0)
        shares = label_proportions(drawn, [])
        held += [each.low <= share <= each.high for each, share in zip(shares, truth, strict=True)]
    assert 0.93 < np.mean(held) < 0.97


def test_more_noise_has_the_variance_it_says_and_no_noise_changes_nothing(made):
    sketch = read_sketch(made.sketch_path)
    assert noisier(sketch, sketch.noise_variance, 0) is sketch
    more = noisier(sketch, sketch.noise_variance * 5, 3)
    assert more.noise_variance == pytest.approx(sketch.noise_variance * 5)
    assert (more.sums - sketch.sums).var() == pytest.approx(sketch.noise_variance * 4, rel=0.15)


def test_the_curve_falls_with_epsilon_and_ends_at_the_release(made):
    sketch, pool = read_sketch(made.sketch_path), load_pool("general").sentences[:2_000]
    points = noise_curve(sketch, pool, made.texts, [row["intent"] for row in made.rows])
    assert [point.epsilon for point in points] == [0.125, 0.25, 0.5, 1.0, 2.0]
    assert points[0].kept < points[-1].kept
    assert points[-1].count_deviation == pytest.approx(sketch.count_deviation)
    assert points[0].count_deviation > 8 * sketch.count_deviation


def test_the_map_keeps_noise_round_and_places_every_row(made):
    sketch = read_sketch(made.sketch_path)
    labels = [row["intent"] for row in made.rows]
    places = cloud_map(sketch, load_pool("general").sentences[:500], made.texts, labels)
    assert places.rows.shape == (len(made), 2)
    assert np.allclose(places.directions @ places.directions.T, np.eye(2))
    assert {mean.label for mean in places.means} == set(SENTENCES)


class Texts(HTMLParser):
    """The words of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @classmethod
    def of(cls, page: str) -> str:
        parser = cls()
        parser.feed(page)
        return "\n".join(parser.words)


def test_axes_of_any_height_have_a_few_round_steps():
    for highest in np.geomspace(1e-4, 1.0, 200).tolist():
        steps = round_steps(highest)
        assert 2 <= len(steps) <= 6
        assert steps[-1] <= highest + 1e-9
