"""Several label columns: what a row adds, the exact promise on a small domain, the joint law, the commands."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.guarantee import Unit
from tacit.matching.artifact import read_sketch, save_sketch
from tacit.matching.features import default_map
from tacit.matching.joint_corpus import column_view, joint_law
from tacit.matching.labels import Bins, ListedLabels
from tacit.matching.marginals import JointLabels, fitted_joint, joint_labels, map_beside, marginal
from tacit.matching.merging import merge_sketches
from tacit.matching.pool import load_pool
from tacit.matching.pure import pure_map
from tacit.matching.sides import check_room
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import ExactSums, exact_sums, rows_in_memory
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import gaussian_delta

SENTENCES = load_pool().sentences
USUAL = default_map(words=200)
RULE = joint_labels(
    [
        ("intent", ListedLabels(("ask", "tell"))),
        ("stars", Bins((0, 2, 4, 5))),
        ("way", ListedLabels(("mail", "phone"))),
    ],
    USUAL,
)
SMALL = map_beside(RULE, USUAL)
TEXTS = st.sampled_from([*SENTENCES[::20_000], "", "🙂", "the " * 9_000])
VALUES = st.tuples(
    st.sampled_from(["ask", "tell", "other", None]),
    st.sampled_from([0, 1.5, "4.5", -3, 99, "x", None]),
    st.sampled_from(["mail", " phone ", ""]),
)


def sums(rows: list[tuple[Any, ...]], *, by_user: bool = False) -> ExactSums:
    texts, values = [row[0] for row in rows], [row[1] for row in rows]
    users = [row[2] for row in rows] if by_user else None
    return exact_sums(rows_in_memory(texts, values, users), RULE, SMALL, by_user=by_user)


def squared_distance(first: ExactSums | None, second: ExactSums | None) -> int:
    zero = ExactSums(np.zeros_like((first or second).totals), np.zeros_like((first or second).side), None)  # type: ignore
    this, other = first or zero, second or zero
    moved = [*(this.totals - other.totals).ravel().tolist(), *(this.side - other.side).tolist()]
    return sum(value * value for value in moved)


# What a row adds ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.tuples(TEXTS, VALUES), min_size=1, max_size=6), st.data())
def test_neighbors_differ_by_at_most_one_over_all_columns_and_tables(rows: list[Any], data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, len(rows) - 1))
    others = [row for place, row in enumerate(rows) if place != left_out]
    assert squared_distance(sums(rows), sums(others) if others else None) <= GRID**2


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXTS, VALUES, st.sampled_from(["u", " u", "v"])), min_size=1, max_size=12))
def test_a_user_moves_everything_by_at_most_one(rows: list[Any]) -> None:
    others = [row for row in rows if row[2].strip() != "u"]
    assert squared_distance(sums(rows, by_user=True), sums(others, by_user=True) if others else None) <= GRID**2


def test_a_full_row_uses_the_room_and_too_large_weights_are_refused() -> None:
    moved = squared_distance(sums([("Will it rain tomorrow in Paris?", ("ask", 1, "mail"))]), None)
    assert 0.97 * GRID**2 < moved <= GRID**2
    with pytest.raises(BadParameterError, match="at most 1"):
        check_room(RULE, USUAL)
    with pytest.raises(BadParameterError, match="one label column"):
        check_room(RULE, pure_map())


def test_tables_are_counts_of_pairs_and_rows_without_a_label_add_nothing() -> None:
    rows = [("a", ("ask", 1, "mail"))] * 3 + [("b", ("tell", 4.5, "phone"))] * 2 + [("c", ("ask", 1, "fax"))] * 4
    exact = sums(rows)
    tables = {pair: np.rint(table) for pair, table in RULE.pair_tables(exact.side, 1).items()}
    assert tables[0, 1].tolist() == [[3, 0, 0], [0, 0, 2]]
    assert tables[0, 2].tolist() == [[3, 0], [0, 2]]
    assert tables[1, 2].tolist() == [[3, 0], [0, 0], [0, 2]]
    assert exact.findings.unlabeled == 4


def test_all_neighbors_of_a_small_world_keep_the_promise() -> None:
    """Whatever row is added to any data set of at most two rows: the delta of the Gaussian mechanism at the exact
    distance of the sums is at most that of the card."""
    world = [(text, values) for text in ("play", "it rains", "") for values in
             itertools.product(("ask", "tell"), (1, 4.5), ("mail",))]  # fmt: skip
    data_sets = [[row] for row in world] + [list(pair) for pair in itertools.combinations(world, 2)]
    built = build_sketch(
        rows_in_memory([text for text, _ in world], [values for _, values in world]), RULE, SMALL, epsilon=1.0,
        delta=1e-5,
    ).sketch  # fmt: skip
    sigma = math.sqrt(built.noise_variance)  # a little above, by the rounding; the exact scale is on the card
    sigma = min(sigma, float(str(built.guarantee.parameters["noise"]).split()[4]) * (1 + 1e-5))
    worst = 0
    for larger in data_sets:
        for left_out in range(len(larger)):
            others = larger[:left_out] + larger[left_out + 1 :]
            worst = max(worst, squared_distance(sums(larger), sums(others) if others else None))
    assert gaussian_delta(1.0, sigma, math.sqrt(worst) / GRID) <= 1e-5 * (1 + 1e-3)
    assert gaussian_delta(1.0, sigma, 1.05) > 1.1e-5, "the check would see a row that adds 5 % more"


# The joint law ------------------------------------------------------------------------------------------------------


def test_exact_tables_give_the_law_of_greatest_entropy() -> None:
    """With one-way tables only, the fit is their product; with all pairs of three dependent columns, its tables are
    those of the truth."""
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.full(24, 0.6)).reshape(2, 3, 4)
    one_way: dict[tuple[int, ...], Any] = {(axis,): 10_000 * marginal(truth, (axis,)) for axis in range(3)}
    small = dict.fromkeys(one_way, 1.0)
    product = np.einsum("i,j,k->ijk", *(marginal(truth, (axis,)) for axis in range(3)))
    assert np.abs(fitted_joint((2, 3, 4), one_way, small) - product).max() < 1e-3
    pairs = {axes: 10_000 * marginal(truth, axes) for axes in itertools.combinations(range(3), 2)}
    fitted = fitted_joint((2, 3, 4), pairs, dict.fromkeys(pairs, 1.0))
    for axes in pairs:
        assert np.abs(marginal(fitted, axes) - marginal(truth, axes)).max() < 5e-3


def test_negative_and_contradicting_tables_still_give_a_law() -> None:
    tables: dict[tuple[int, ...], Any] = {
        (0,): np.array([500.0, -20.0]),
        (1,): np.array([100.0, 300.0]),
        (0, 1): np.array([[100.0, 390.0], [5.0, -30.0]]),
    }
    law = fitted_joint((2, 2), tables, dict.fromkeys(tables, 100.0))
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1)
    assert law[0].sum() > 0.9


def test_a_joint_law_is_found_under_noise() -> None:
    rows = [(SENTENCES[place], ("ask", 1, "mail") if place % 3 else ("tell", 4.5, "phone")) for place in range(3_000)]
    source = rows_in_memory([text for text, _ in rows], [values for _, values in rows])
    sketch = build_sketch(source, RULE, SMALL, epsilon=1.0, delta=1e-6, seed=1).sketch
    law = joint_law(sketch)
    assert law[0, 0, 0] == pytest.approx(2 / 3, abs=0.06)
    assert law[1, 2, 1] == pytest.approx(1 / 3, abs=0.06)


# Files and merging --------------------------------------------------------------------------------------------------


def test_sketches_of_several_columns_are_saved_and_merged(tmp_path: Path) -> None:
    source = rows_in_memory(["a b"] * 50, [("ask", 1, "mail")] * 50)
    parts = [build_sketch(source, RULE, SMALL, epsilon=1.0, delta=1e-5).sketch for _ in range(2)]
    saved = save_sketch(parts[0], tmp_path / "s.tacit")
    again = read_sketch(tmp_path / "s.tacit")
    assert again.rule == RULE
    assert (again.side == parts[0].side).all()
    assert saved.guarantee == again.guarantee
    merged = merge_sketches(parts, disjoint=True)
    steps = [part.step // merged.step for part in parts]
    assert (merged.side == sum(part.side * step for part, step in zip(parts, steps, strict=True))).all()
    other = joint_labels([(name, rule) for name, rule in reversed(RULE.columns)], USUAL)
    turned = rows_in_memory(["a b"] * 50, [("mail", 1, "ask")] * 50)
    with pytest.raises(BadInputError, match="different labels"):
        merge_sketches([parts[0], build_sketch(turned, other, SMALL, epsilon=1.0, delta=1e-5).sketch])
    view = column_view(again, 1)
    assert view.labels == ("0 to 2", "2 to 4", "4 to 5")
    assert view.counts.shape == (3,)


@pytest.mark.parametrize(
    "columns",
    [
        (("a", ListedLabels(("x",))),),
        (("a", ListedLabels(("x",))), ("a", ListedLabels(("y",)))),
        tuple((str(n), ListedLabels(tuple(map(str, range(200))))) for n in range(4)),
    ],
)
def test_columns_that_cannot_be_fitted_are_refused(columns: Any) -> None:
    with pytest.raises(BadParameterError):
        JointLabels(columns, 0.1)


# Commands -----------------------------------------------------------------------------------------------------------

TOPICS = {"weather": "Will it rain in Paris tomorrow?", "music": "Play a song by Bach."}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with Path("rows.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "topic", "channel", "stars", "who"])
        for place in range(900):
            topic = "weather" if place % 3 else "music"
            table.writerow(
                [TOPICS[topic], topic, "mail" if topic == "weather" else "phone", place % 5, f"u{place % 300}"]
            )
    return tmp_path


COLUMNS = ("--label-column", "topic", "--label-column", "channel", "--label-column", "stars")
LABELS = ("--labels-of", "topic=weather,music", "--labels-of", "channel=mail,phone", "--bins-of", "stars=0,3,5")


def test_the_command_keeps_labels_of_several_columns_together(folder: Path, small_pool: Path) -> None:
    usual = ("synthesize", "rows.csv", "-c", "text", *COLUMNS, *LABELS, "-e", "2", "--pool", str(small_pool))
    assert run_command([*usual, "-n", "400", "-o", "out.csv", "-q"]) == 0
    with Path("out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"text", "topic", "channel", "stars"}
    together = sum((row["topic"], row["channel"]) in (("weather", "mail"), ("music", "phone")) for row in rows)
    assert together > 0.8 * len(rows), "the pair of labels was kept, which single columns could not tell"
    rainy = {topic: sum("rain" in row["text"].lower() for row in rows if row["topic"] == topic) for topic in TOPICS}
    assert rainy["weather"] > rainy["music"]
    card = json.loads(Path("out.csv.card.json").read_text())
    assert "3 columns" in card["guarantee"]["parameters"]["labels"]
    assert run_command(["synthesize", "--from", "out-sketch.tacit", "--pool", str(small_pool), "-n", "50", "-o",
                        "more.csv", "-q"]) == 0  # fmt: skip
    assert Path("more.csv").read_text().splitlines()[0] == "text,topic,channel,stars"


def test_several_columns_of_users_and_of_declared_labels(folder: Path) -> None:
    built = tacit.sketch("rows.csv", epsilon=1, column="text", label_columns=["topic", "stars"], user_column="who",
                         labels_of={"topic": ["weather", "music"]}, bins_of={"stars": [0, 3, 5]})  # fmt: skip
    assert built.guarantee.unit is Unit.USER
    with pytest.warns(TacitWarning, match="not in the public list"):
        tacit.sketch("rows.csv", epsilon=1, column="text", label_columns=["topic", "channel"],
                     labels_of={"topic": ["weather"]}, declare_labels_public=True)  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"label_columns": ["topic", "stars"]}, "labels-of-each-column"),
        (
            {"label_columns": ["topic", "stars"], "labels": ["a"], "declare_labels_public": True},
            "labels-of-which-column",
        ),
        ({"label_columns": ["topic"], "labels_of": {"topic": ["a"], "x": ["b"]}}, "labels-of-no-column"),
        ({"label_columns": ["topic"], "labels_of": {"topic": ["a"]}, "labels": ["a"]}, "labels-of-one-kind"),
        ({"label_columns": ["topic", "stars"], "declare_labels_public": True, "pure": True}, "pure-has-one-column"),
        ({"label_columns": ["topic"], "label_column": "topic", "labels": ["a"]}, "option-twice"),
    ],
)
def test_options_of_columns_that_do_not_fit_are_refused(folder: Path, options: dict[str, Any], code: str) -> None:
    with pytest.raises(BadParameterError) as error:
        tacit.sketch("rows.csv", epsilon=1, column="text", **options)
    assert error.value.code == code
