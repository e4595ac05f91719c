"""`sketch.tacit`: written at once with its card, checked when read, merged exactly."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import VoidReason
from tacit.matching import artifact
from tacit.matching.artifact import content_digest, packed, read_sketch, save_sketch, sketch_bytes, unpacked
from tacit.matching.features import default_map
from tacit.matching.labels import Bins, ListedLabels, public_topics
from tacit.matching.merging import merge_sketches
from tacit.matching.pool import load_pool
from tacit.matching.sketch import Sketch, build_sketch
from tacit.matching.sums import exact_sums, rows_in_memory
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_delta
from tacit.text.files import OutputError

SENTENCES = load_pool().sentences
SMALL = default_map(words=200)
LABELS = ListedLabels(("a", "b"))


def made(start: int = 0, epsilon: float = 1.0, seed: int | None = None, delta: float = 1e-6) -> Sketch:
    texts = list(SENTENCES[start : start + 50])
    rows = rows_in_memory(texts, ["a", "b"] * 25)
    return build_sketch(rows, LABELS, SMALL, epsilon=epsilon, delta=delta, seed=seed).sketch


@settings(max_examples=100)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=20))
def test_whole_numbers_come_back(values: list[int]) -> None:
    array = np.array([values], dtype=np.int64)
    assert (unpacked(packed(array), array.shape) == array).all()


def test_a_sketch_comes_back_with_its_card(tmp_path: Path) -> None:
    saved = save_sketch(made(), tmp_path / "s.tacit")
    read = read_sketch(tmp_path / "s.tacit")
    assert (read.totals == saved.totals).all()
    assert replace(read, totals=saved.totals, side=saved.side) == saved
    assert sketch_bytes(read) == (tmp_path / "s.tacit").read_bytes()
    card = Card.from_json((tmp_path / "s.tacit.card.json").read_text())
    assert card.guarantee == read.guarantee
    assert card.guarantee.parameters["sketch"] == content_digest(read)
    assert (tmp_path / "s.tacit.card.md").read_text().startswith("# Privacy card")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.tacit", "s.tacit.card.json", "s.tacit.card.md"]


@pytest.mark.parametrize("rule", [public_topics(4), Bins((0, 1, 2))])
def test_topics_and_bins_come_back(rule: object, tmp_path: Path) -> None:
    rows = rows_in_memory(list(SENTENCES[:20]), [0.5] * 20)
    save_sketch(build_sketch(rows, rule, SMALL, epsilon=1.0).sketch, tmp_path / "s.tacit")
    assert read_sketch(tmp_path / "s.tacit").labels == rule.names


def test_a_typical_sketch_is_small() -> None:
    labels = [f"label {place}" for place in range(20)]
    rows = rows_in_memory(list(SENTENCES[:4_000]), labels * 200)
    whole = build_sketch(rows, ListedLabels(tuple(labels)), default_map(words=25_000), epsilon=1.0).sketch
    assert whole.totals.size > 500_000
    assert len(sketch_bytes(whole)) < 1_000_000


def test_files_that_are_no_sketches_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.tacit"
    save_sketch(made(), path)
    whole = path.read_bytes()
    with pytest.raises(BadInputError, match="exists"):
        save_sketch(made(), path)
    save_sketch(made(), path, force=True)
    with pytest.raises(BadInputError, match="no sketch '"):
        read_sketch(tmp_path / "nothing.tacit")
    for content in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(BadInputError, match="is no sketch"):
            read_sketch(path)
    with pytest.raises(OutputError, match="does not exist"):
        save_sketch(made(), tmp_path / "no" / "s.tacit")


def changed(path: Path, **values: object) -> None:
    """Write a sketch again with other values in its header."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(files["sketch.json"]) | values
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**files, "sketch.json": json.dumps(header).encode()}.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("values", "words"),
    [({"version": 99}, "version 99"), ({"step": 1}, "was changed"), ({"noise_variance": 0.0}, "was changed")],
)
def test_changed_sketches_are_refused(values: dict[str, object], words: str, tmp_path: Path) -> None:
    save_sketch(made(), tmp_path / "s.tacit")
    changed(tmp_path / "s.tacit", **values)
    with pytest.raises(BadInputError, match=words):
        read_sketch(tmp_path / "s.tacit")


def test_there_is_no_sketch_without_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(contents: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifact, "write_files", full)
    with pytest.raises(OutputError, match="disk is full"):
        save_sketch(made(), tmp_path / "s.tacit")
    assert list(tmp_path.iterdir()) == []


# Merging --------------------------------------------------------------------------------------------------------------


def without_noise(start: int, stop: int, step: int = 1) -> Sketch:
    """The exact sums in the shape of a sketch: a test's only way to see that sums add up."""
    texts = list(SENTENCES[start:stop])
    exact = exact_sums(rows_in_memory(texts, [("a", "b")[len(text) % 2] for text in texts]), LABELS, SMALL)
    return replace(made(), totals=exact.totals * (8 // step), step=step, noise_variance=float(stop))


def test_sketches_of_ten_sites_are_the_sketch_of_all_rows() -> None:
    sites = [without_noise(start, start + 40) for start in range(0, 400, 40)]
    merged = merge_sketches(sites, disjoint=True)
    assert (merged.totals == without_noise(0, 400).totals).all()
    assert merged.noise_variance == math.fsum(site.noise_variance for site in sites)


def test_steps_are_brought_to_the_finest() -> None:
    fine, coarse = without_noise(0, 40), without_noise(40, 80, step=8)
    merged = merge_sketches([coarse, fine])
    assert merged.step == 1
    assert (merged.totals == without_noise(0, 80).totals).all()


def test_the_noise_of_merged_sites_is_as_stated() -> None:
    sites = [made(start, epsilon) for start, epsilon in ((0, 1.0), (50, 0.3), (100, 2.0))]
    merged = merge_sketches(sites, disjoint=True)
    texts = list(SENTENCES[:150])
    exact = exact_sums(rows_in_memory(texts, ["a", "b"] * 75), LABELS, SMALL).totals
    noise = (merged.totals * merged.step - exact) / GRID
    assert abs(noise.std() / merged.noise_deviation - 1) < 4.5 / math.sqrt(2 * noise.size)


def test_disjoint_sites_have_the_weakest_promise_and_others_are_composed() -> None:
    sites = [made(0, 1.0), made(50, 0.5, delta=1e-5), made(100, 0.5)]
    apart = merge_sketches(sites, disjoint=True).guarantee
    assert (apart.epsilon, apart.delta) == (1.0, 1e-5)
    assert any("exactly one of the parts" in line for line in apart.assumptions)
    assert "disjoint" in str(apart.parameters["merged sketches"])
    joint = merge_sketches(sites).guarantee
    assert joint.delta == pytest.approx(1.2e-5)
    assert 1.0 < joint.epsilon < 2.0, "tighter than the sum of the epsilons"
    sigmas = [analytic_gaussian_sigma(s.guarantee.epsilon, s.guarantee.delta, 1.0) for s in sites]
    together = math.sqrt(sum(sigma**-2 for sigma in sigmas))
    assert gaussian_delta(joint.epsilon, 1.0, together) <= joint.delta
    assert any("composed" in line for line in joint.assumptions)


def test_merged_sketches_merge_again_in_any_order() -> None:
    a, b, c = made(0), made(50), made(100)
    left = merge_sketches([merge_sketches([a, b]), c])
    right = merge_sketches([a, merge_sketches([c, b])])
    assert (left.totals == right.totals).all()
    assert left.guarantee.epsilon == pytest.approx(merge_sketches([a, b, c]).guarantee.epsilon, rel=1e-6)


def test_a_void_part_voids_the_whole() -> None:
    for disjoint in (True, False):
        merged = merge_sketches([made(0), made(50, seed=1)], disjoint=disjoint)
        assert merged.guarantee.void_reason is VoidReason.TEST_SEED


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    first = made()
    with pytest.raises(BadParameterError, match="at least two"):
        merge_sketches([first])
    save_sketch(first, tmp_path / "s.tacit")
    with pytest.raises(BadInputError, match="twice"):
        merge_sketches([first, read_sketch(tmp_path / "s.tacit")])
    rows = rows_in_memory(["x"] * 20, ["a"] * 20, [f"u{place}" for place in range(20)])
    for other in (
        build_sketch(rows, ListedLabels(("b", "a")), SMALL, epsilon=1.0).sketch,
        build_sketch(rows, LABELS, default_map(words=100), epsilon=1.0).sketch,
        build_sketch(rows, LABELS, SMALL, epsilon=1.0, by_user=True).sketch,
        build_sketch(rows, public_topics(2), SMALL, epsilon=1.0).sketch,
    ):
        with pytest.raises(BadInputError, match=r"different|another"):
            merge_sketches([first, other])
