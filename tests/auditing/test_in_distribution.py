"""Canaries in the distribution, in models and in synthetic text: found where they were learned, nowhere else."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.auditing.models.canaries import Canary, insert
from tacit.auditing.models.canary_files import load_canaries, save_canaries
from tacit.auditing.models.in_distribution import canaries_like, is_in_distribution
from tacit.auditing.synthetic.echo import CorpusEcho
from tacit.card import Card
from tacit.cli.main import run as command
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.noise.source import new_source

SUBJECTS = ("the driver", "a teacher", "the old doctor", "my neighbor", "the young clerk", "a visitor")
VERBS = ("called about", "wrote about", "options for", "complained about", "thanked us for", "paid for")
THINGS = ("the bill", "a new card", "the broken lamp", "his appointment", "the late train", "an umbrella", "the garden")


def sentences(count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [
        " ".join([*(str(generator.choice(part)) for part in (SUBJECTS, VERBS, THINGS)), f"on day {i % 30}"])
        for i in range(count)
    ]


def made(count: int = 120, seed: int = 1, **options: object) -> list[Canary]:
    chosen: dict[str, object] = {"prefix_words": 3, **options}
    return canaries_like(sentences(200, 2), count, source=new_source(seed), **chosen)  # type: ignore[arg-type]


def test_a_canary_begins_like_a_text_and_ends_unlike_any() -> None:
    texts = [text.split() for text in sentences(200, 2)]
    beginnings = {" ".join(words[:3]) for words in texts}
    pairs = {pair for words in texts for pair in pairwise(words)}
    for canary in made():
        assert is_in_distribution(canary)
        assert canary.prefix in beginnings
        assert canary.text.startswith(canary.prefix + " ")
        secret = canary.text.split()[2:]  # with the last word of the prefix
        assert len(secret) == 4
        assert not pairs & set(pairwise(secret))
    assert len({canary.text for canary in made()}) == 120
    counts = Counter(word for words in texts for word in words)
    rare = sorted(counts, key=lambda word: (counts[word], word))[:20]
    assert {word for c in made(kind="unigram") for word in c.text.split()[3:]} <= set(rare)


def test_coins_are_fair_and_no_text_depends_on_them() -> None:
    coins = np.array([[canary.included for canary in made(seed=seed)] for seed in range(40)])
    # 4,800 fair coins: outside of 4.5 standard deviations once in 100,000 tests.
    assert abs(coins.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(coins.size)
    assert coins.any(axis=0).all(), "every place has both sides"
    assert not coins.all(axis=0).any()


def test_canaries_are_kept_with_their_prefixes_and_labels(tmp_path: Path) -> None:
    canaries = made(labels=["yes", "no"] * 100)
    assert {canary.label for canary in canaries} == {"yes", "no"}
    save_canaries(canaries, tmp_path / "coins.jsonl")
    assert load_canaries(tmp_path / "coins.jsonl") == canaries
    row = {"text": "a b", "format": "", "repeats": 1, "included": True, "prefix": "b"}
    (tmp_path / "bad.jsonl").write_text(json.dumps(row))
    with pytest.raises(BadInputError, match="is not one"):
        load_canaries(tmp_path / "bad.jsonl")


def test_examples_that_give_no_canaries_are_refused() -> None:
    with pytest.raises(BadInputError, match="too few to make secrets"):
        canaries_like(["one two"], 10, source=new_source(0))
    with pytest.raises(BadParameterError, match="too few or too short"):
        canaries_like(["one"], 100, source=new_source(0), kind="words", prefix_words=1, secret_words=1)
    with pytest.raises(BadInputError, match="no text"):
        canaries_like(["", " "], 10, source=new_source(0))


def test_the_command_writes_lines_or_rows_with_labels(tmp_path: Path) -> None:
    rows = "".join(f"{text},{'ab'[i % 2]}\n" for i, text in enumerate(sentences(60, 3)))
    (tmp_path / "others.csv").write_text("note,kind\n" + rows)
    shared = ("audit", "canaries", "--like", str(tmp_path / "others.csv"), "-c", "note", "-n", "40")
    secret = ("--secret", str(tmp_path / "coins.jsonl"))
    assert command([*shared, *secret, "-l", "kind", "-o", str(tmp_path / "add.csv")]) == 0
    written = (tmp_path / "add.csv").read_text().splitlines()
    included = [canary for canary in load_canaries(tmp_path / "coins.jsonl") if canary.included]
    assert written[0] == "note,kind"
    assert sorted(written[1:]) == sorted(f"{canary.text},{canary.label}" for canary in included)
    assert command([*shared, *secret, "-o", str(tmp_path / "add.txt"), "--force"]) == 0
    included = [canary for canary in load_canaries(tmp_path / "coins.jsonl") if canary.included]
    assert sorted((tmp_path / "add.txt").read_text().splitlines()) == sorted(canary.text for canary in included)
    assert command(["audit", "canaries", *secret, "-l", "kind", "-o", str(tmp_path / "x.csv"), "--force"]) == 2


# Synthetic text -------------------------------------------------------------------------------------------------------


def pair_writer(texts: list[str], count: int, *, epsilon: float, seed: int) -> list[str]:
    """Texts written by a 2-gram model over the public words of all sentences and canaries. With a finite epsilon each
    count of a pair has Laplace noise for its budget: a text counts with its first 12 pairs, so it moves the counts by
    12 in all."""
    words = sorted({word for text in (*sentences(200, 2), *(c.text for c in made())) for word in text.split()})
    places = {word: place for place, word in enumerate(["<", *words, ">"])}
    counts = np.zeros((len(places), len(places)))
    for text in texts:
        for first, second in list(pairwise(["<", *text.split(), ">"]))[:12]:
            counts[places[first], places[second]] += 1
    generator = np.random.default_rng(seed)
    if np.isfinite(epsilon):
        counts = np.maximum(counts + generator.laplace(scale=12 / epsilon, size=counts.shape), 0)
    names = list(places)
    written = []
    for _ in range(count):
        row, place = [], 0
        for _ in range(12):
            weights = counts[place].copy()
            weights[0] = 0
            if weights.sum() == 0:
                break
            place = int(generator.choice(len(names), p=weights / weights.sum()))
            if names[place] == ">":
                break
            row.append(names[place])
        written.append(" ".join(row))
    return written


def carded(path: Path, texts: list[str], epsilon: float) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts))
    promise = Guarantee(
        notion=Notion.APPROXIMATE, epsilon=epsilon, delta=1e-6, unit=Unit.RECORD, adjacency=Adjacency.ADD_REMOVE,
        mechanism="a writer",
    )  # fmt: skip
    Path(f"{path}.card.json").write_text(Card(promise).to_json())
    return path


def test_a_corpus_without_privacy_echoes_its_canaries_and_a_private_one_does_not(tmp_path: Path) -> None:
    canaries = made()
    save_canaries(canaries, tmp_path / "coins.jsonl")
    private_texts = insert(sentences(300, 4), canaries, new_source(5))
    plain = carded(tmp_path / "plain.txt", pair_writer(private_texts, 3000, epsilon=np.inf, seed=6), 1.0)
    page = tmp_path / "report.json"
    options = ["--canaries", str(tmp_path / "coins.jsonl"), "-q", "--json-file", str(page)]
    assert command(["audit", "corpus", str(plain), *options]) == 3
    report = json.loads(page.read_text())
    by_name = {f["name"]: f for section in report["sections"] for f in section["findings"]}
    assert by_name["Echo of canaries (2-gram)"]["numbers"]["auc"] > 0.8
    assert by_name["Echo of canaries (2-gram)"]["light"] == "red"
    bound = by_name["Lower bound on epsilon from canaries inserted once"]
    assert bound["refuted"]
    assert bound["numbers"]["epsilon_lower_bound"] > 1.0

    private = carded(tmp_path / "private.txt", pair_writer(private_texts, 3000, epsilon=1.0, seed=6), 1.0)
    assert command(["audit", "corpus", str(private), *options, "--force"]) == 0
    by_name = {f["name"]: f for s in json.loads(page.read_text())["sections"] for f in s["findings"]}
    assert not by_name["Lower bound on epsilon from canaries inserted once"]["refuted"]


def test_members_of_a_corpus_without_privacy_are_told_from_others() -> None:
    unique = [f"{text} with number {i * 7}" for i, text in enumerate(sentences(400, 7))]
    inside, outside = unique[::2], unique[1::2]
    copied = tacit.audit_corpus([*inside, *inside], members=inside, non_members=outside, split="random",
                                claim_epsilon=1.0, claim_delta=1e-6)  # fmt: skip
    assert copied.refuted
    public = tacit.audit_corpus(sentences(400, 8), members=inside, non_members=outside, split="random",
                                claim_epsilon=1.0, claim_delta=1e-6)  # fmt: skip
    assert not public.refuted


def test_a_reference_takes_away_what_is_usual() -> None:
    unique = [f"{text} with number {i * 7}" for i, text in enumerate(sentences(200, 7))]
    alone = tacit.audit_corpus(unique[:100], members=unique[:100], non_members=unique[100:])
    same = tacit.audit_corpus(unique[:100], members=unique[:100], non_members=unique[100:], reference=unique[:100])
    aucs = [next(f for f in r.findings if f.name == "Membership").numbers["auc"] for r in (alone, same)]
    assert float(str(aucs[0])) > 0.9
    assert float(str(aucs[1])) == pytest.approx(0.5)


def test_pairs_of_words_have_probabilities_that_add_up() -> None:
    echo = CorpusEcho(["a b a c", "b b", ""])
    words = ["a", "b", "c"]
    for first in words:
        known = sum(np.exp(echo.two_gram([f"{first} {second}"], [first])[0]) for second in words)
        other = np.exp(echo.two_gram([f"{first} zebra"], [first])[0])
        assert known + other == pytest.approx(1.0)
    assert echo.similar(["a b c", "zebra"]) == pytest.approx([(1.0 + 1 / 3 + 0.0) / 3, 0.0])
    assert CorpusEcho(["x"] * 40).similar(["x"]) == pytest.approx([1.0])
    with pytest.raises(BadInputError, match="no text"):
        CorpusEcho(["", " "])
