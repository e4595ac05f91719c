"""Pools that a language model writes: public prompts, cleaned sentences, and a writing that goes on after a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.jobs import pool_write
from tacit.jobs.pool_write import PoolWriteConfig, prompt_kinds, run, write
from tacit.matching.artifact import save_sketch
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import read_pool
from tacit.matching.prompts import Prompt, PromptKind, is_usable, prompt_of, prompts_in_turn, sentences_in
from tacit.matching.recipes import load_recipe, recipe_names
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import rows_in_memory

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll")


class NumberedWriter:
    """Writes new sentences after every prompt, and breaks after some prompts if that is wanted."""

    source = "a model of a test"

    def __init__(self, breaks_after: int | None = None, repeats: bool = False) -> None:
        self.prompts: list[str] = []
        self.breaks_after = breaks_after
        self.repeats = repeats

    def requested(self, request: str, seed: int) -> list[str]:
        return [text.strip().split("\n")[0] + '." and more' for text in self.continuations(request, seed)]

    def continuations(self, prompt: str, seed: int) -> list[str]:
        if self.breaks_after is not None and len(self.prompts) == self.breaks_after:
            raise KeyboardInterrupt
        self.prompts.append(prompt)
        number = 0 if self.repeats else seed
        picked = [WORDS[(number * 7 + step * (number + 1)) % len(WORDS)] for step in range(4)]
        sentence = f" {picked[0]} number{number} {picked[1]}{number} {picked[2]}{number} today"
        return [f"{sentence}\nAbout a {picked[3]}: {picked[3]} again{number} x{number} y{number}\nAbout the"]


@pytest.fixture
def writes_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[NumberedWriter], NumberedWriter]:
    def use(writer: NumberedWriter) -> NumberedWriter:
        monkeypatch.setattr(pool_write, "load_writer", lambda config: writer)
        return writer

    return use


def config_for(folder: Path, **options: object) -> PoolWriteConfig:
    usual: dict[str, object] = {"about": "messages to a bank", "labels": ("lost card", "fees"), "rows": 12}
    return PoolWriteConfig(output=folder / "w.tacit", **{**usual, "examples": ("a fee: why do i pay it",), **options})


def test_a_pool_names_the_model_its_license_and_the_prompts(tmp_path: Path, writes_with) -> None:
    writer = writes_with(NumberedWriter())
    result = run(config_for(tmp_path))
    pool = read_pool(result.output)
    assert len(pool) == result.sentences == 12
    assert "a model of a test" in pool.sources[0].name
    assert "messages to a bank" in pool.sources[0].name
    assert pool.sources[0].license == "Apache-2.0"
    assert set(pool.credits) == {"messages to a bank. About lost card", "messages to a bank. About fees"}
    assert "About lost card" in pool.attribution(range(12))
    assert all(prompt.startswith("messages to a bank.\nAbout a fee: why do i pay it\n") for prompt in writer.prompts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w.tacit"]


def test_the_command_takes_subjects_with_commas(
    tmp_path: Path, writes_with, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = writes_with(NumberedWriter())
    monkeypatch.setattr("tacit.jobs.pool_write.needs_of_language_model", lambda _model: [])  # the writer needs none
    arguments = ["pool", "write", "--about", "messages", "--labels", "lost card, fees", "--rows", "6", "-o"]
    examples = ["--example", "a fee: why do i pay it", "--example", "the app: it closes at once"]
    assert run_command([*arguments, str(tmp_path / "w.tacit"), *examples]) == 0
    assert "6 sentences" in capsys.readouterr().err
    assert {prompt.rpartition("About ")[2] for prompt in writer.prompts} == {"lost card:", "fees:"}
    assert "the app: it closes at once" in writer.prompts[0]


def test_an_interrupted_writing_goes_on_and_gives_the_same(tmp_path: Path, writes_with) -> None:
    (tmp_path / "whole").mkdir()
    writes_with(NumberedWriter())
    whole = read_pool(run(config_for(tmp_path / "whole")).output)
    writes_with(NumberedWriter(breaks_after=3))
    with pytest.raises(KeyboardInterrupt):
        run(config_for(tmp_path))
    record = next(tmp_path.glob("w-writing-*.jsonl"))
    record.write_bytes(record.read_bytes() + b'{"work": "prompt 3", "res')  # cut off in the middle of a line
    continued = writes_with(NumberedWriter())
    assert list(read_pool(run(config_for(tmp_path)).output).sentences) == list(whole.sentences)
    assert len(continued.prompts) == 6 - 3


def test_a_model_that_repeats_itself_ends_with_a_warning(tmp_path: Path, writes_with) -> None:
    writes_with(NumberedWriter(repeats=True))
    with pytest.warns(TacitWarning, match="repeats itself"):
        result = run(config_for(tmp_path))
    assert result.sentences == 2


def test_without_examples_a_sentence_is_asked_for(tmp_path: Path, writes_with) -> None:
    writer = writes_with(NumberedWriter())
    pool = write(output=tmp_path / "w.tacit", about="questions to a bank", rows=3)
    assert writer.prompts[0] == "Write one short sentence of this kind: questions to a bank."
    assert all(sentence.endswith("today.") for sentence in pool.sentences)


def test_the_names_of_labels_of_a_sketch_are_subjects(tmp_path: Path) -> None:
    rule = ListedLabels(("report_lost_card", "PayBill", "7"))
    made = build_sketch(rows_in_memory(["a b c"], ["7"]), rule, default_map(), epsilon=1, delta=1e-6, seed=1)
    save_sketch(made.sketch, tmp_path / "s.tacit")
    (kind,) = prompt_kinds(PoolWriteConfig(about="messages", from_sketch=tmp_path / "s.tacit"))
    assert kind.subjects == ("report lost card", "pay bill")
    rule = ListedLabels(("1", "2"))
    made = build_sketch(rows_in_memory(["a b c"], ["1"]), rule, default_map(), epsilon=1, delta=1e-6, seed=1)
    save_sketch(made.sketch, tmp_path / "numbers.tacit")
    with pytest.raises(BadInputError) as error:
        prompt_kinds(PoolWriteConfig(about="messages", from_sketch=tmp_path / "numbers.tacit"))
    assert error.value.code == "labels-say-nothing"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "about-or-recipe"),
        ({"about": "a", "recipe": "support"}, "about-or-recipe"),
        ({"recipe": "support", "labels": ("fees",)}, "subjects-of-a-recipe"),
        ({"about": "a", "model": "my-model"}, "model-not-public"),
        ({"about": "a", "examples": ("no subject",)}, "example-without-subject"),
    ],
)
def test_what_cannot_be_written_is_refused(options: dict[str, object], code: str) -> None:
    with pytest.raises(BadParameterError) as error:
        PoolWriteConfig(**options)
    assert error.value.code == code


def test_a_pool_that_exists_is_not_replaced(tmp_path: Path, writes_with) -> None:
    writes_with(NumberedWriter())
    (tmp_path / "w.tacit").write_text("kept")
    with pytest.raises(BadInputError) as error:
        run(config_for(tmp_path))
    assert error.value.code == "file-exists"
    assert (tmp_path / "w.tacit").read_text() == "kept"


def test_every_subject_comes_once_in_a_turn() -> None:
    kind = PromptKind("Messages", ("a", "b", "c"), (("x", "one"), ("y", "two")))
    prompts = prompts_in_turn([kind, PromptKind("Other")], seed=1)
    turns = [[next(prompts) for _ in range(4)] for _ in range(2)]
    for turn in turns:
        subjects = sorted(prompt.text.rpartition("About ")[2] for prompt in turn if not prompt.is_request)
        assert subjects == ["a:", "b:", "c:"]
        assert sum(prompt.is_request for prompt in turn) == 1


@given(st.text(max_size=200), st.booleans())
def test_what_is_kept_of_any_text_is_usable(text: str, is_request: bool) -> None:
    prompt = Prompt("Messages.\nAbout a card:", is_request)
    for sentence in sentences_in(text, prompt):
        assert is_usable(sentence)
        assert "\n" not in sentence
        assert sentence == " ".join(sentence.split())


def test_refusals_loops_and_forms_are_left_out() -> None:
    assert not is_usable("As an AI language model I cannot help")
    assert not is_usable("lost card is a lost card is a lost card")
    assert not is_usable("Dear [Bank Name], I write to you")
    assert not is_usable("too short")
    assert is_usable("why was my card declined today?")
    request = prompt_of(PromptKind("questions to a bank"), "fees", [])
    assert request.is_request
    assert sentences_in('Why do I pay this fee?" The customer', request) == ["Why do I pay this fee?"]
    assert sentences_in("Why do I pay this fee and then", request) == []


def test_prompts_of_recipes_hold_no_answers_and_all_subjects_once() -> None:
    for name in recipe_names():
        for kind in load_recipe(name).prompts:
            assert len(set(kind.subjects)) == len(kind.subjects)
            assert all(is_usable(sentence) for _, sentence in kind.examples), kind
            json.dumps(kind.to_dict())
