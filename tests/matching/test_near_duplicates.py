"""Near-duplicates in a stream of sentences: what is removed is nearly the same, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.cli.main import run as run_command
from tacit.jobs.pool import PoolConfig, run
from tacit.matching import near_duplicates
from tacit.matching.near_duplicates import NearDuplicates, features_of, likeness_of
from tacit.matching.pool import load_pool, read_pool

WORDS = ("card", "bank", "late", "why", "is", "my", "the", "payment", "still", "pending", "today", "please")
SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), max_size=25)


def kept_of(sentences: list[str], likeness: float) -> tuple[list[str], int]:
    near = NearDuplicates(likeness, slots=1 << 16)
    return [sentence for sentence, _ in near.kept((sentence, None) for sentence in sentences)], near.removed


def test_one_changed_word_of_a_long_sentence_is_a_near_duplicate() -> None:
    first = "the card that you sent me two weeks ago still does not work in any shop of this town"
    second = first.replace("two", "three")
    assert 0.7 < likeness_of(features_of(first), features_of(second)) < 1
    assert kept_of([first, second, "where is my card", second], 0.7) == ([first, "where is my card"], 2)
    assert kept_of([first, second], 1.0) == ([first, second], 0)


def test_words_in_another_order_are_not_the_same() -> None:
    assert likeness_of(features_of("dog bites man"), features_of("man bites dog")) < 1
    assert likeness_of(features_of("Dog bites man!"), features_of("dog bites MAN")) == 1


@given(SENTENCES, st.sampled_from([0.5, 0.7, 0.9]))
def test_what_is_removed_has_an_earlier_sentence_that_is_kept_and_alike(sentences: list[str], likeness: float) -> None:
    kept, removed = kept_of(sentences, likeness)
    assert len(kept) + removed == len(sentences)
    stream = iter(kept)
    expected = next(stream, None)
    before: list[str] = []
    for sentence in sentences:
        if sentence == expected and not any(sentence == each for each in before):
            before.append(sentence)
            expected = next(stream, None)
        else:
            assert any(likeness_of(features_of(sentence), features_of(each)) >= likeness for each in before)


def test_most_near_duplicates_of_real_sentences_are_recognized() -> None:
    sentences = [sentence for sentence in load_pool().sentences if len(sentence.split()) > 11][:300]
    changed = [" ".join([*sentence.split()[:-1], "indeed"]) for sentence in sentences]
    alike = sum(
        likeness_of(features_of(first), features_of(second)) >= 0.7
        for first, second in zip(sentences, changed, strict=True)
    )
    assert alike > 250
    assert kept_of([*sentences, *changed], 0.7)[1] >= 0.95 * alike


def test_memory_is_bounded_and_recent_sentences_are_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "REMEMBERED", 4)
    sentences = [
        f"sentence number {number} has words of its own like {number * 7} and {number * 11}" for number in range(40)
    ]
    near = NearDuplicates(0.9, slots=1 << 10)
    kept = [sentence for sentence, _ in near.kept((each, None) for each in [*sentences, sentences[-1]])]
    assert kept == sentences
    assert near.removed == 1
    assert len(near._features) == 4


def test_a_pool_is_built_without_them_and_says_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = "the card that you sent me two weeks ago still does not work in any shop of this town"
    (tmp_path / "faq.txt").write_text(f"{first}\n{first.replace('two', 'three')}\nwhere is my card\n")
    output = tmp_path / "pool.tacit"
    result = run(PoolConfig(public_files=(tmp_path / "faq.txt",), public="FAQ", output=output))
    assert (result.sentences, result.near_duplicates) == (2, 1)
    assert list(read_pool(output).sentences) == [first, "where is my card"]
    arguments = ["pool", "build", str(tmp_path / "faq.txt"), "--public", "FAQ", "-o", str(output), "--force"]
    assert run_command(arguments) == 0
    assert "1 near-duplicates left out" in capsys.readouterr().err
    assert run_command([*arguments, "--likeness", "1"]) == 0
    assert len(read_pool(output)) == 3
    assert run_command([*arguments, "--likeness", "0.2"]) == 2
