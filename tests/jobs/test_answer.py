"""Answers by vote, end to end with a tiny model: the card, resuming, users, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit
from tacit.arrays import Floats, Ids
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Notion, Unit
from tacit.jobs.answer import AnsweredQuestions, AnswerPlan
from tacit.noise.source import Source
from tests.jobs.test_synthesize_prompting import Options, rows, tiny  # noqa: F401  # a fixture

pytest.importorskip("torch")
pytest.importorskip("transformers")

QUESTIONS = ["play a song", "fly away", "another song please"]
SMALL: Options = {
    "label_column": "intent", "labels": ("music", "travel"), "epsilon": 2.0, "sets": 6, "set_examples": 2,
    "input_tokens": 8, "physical": 8,
}  # fmt: skip


def made(tiny: str, output: Path, **changes: object) -> AnsweredQuestions:  # noqa: F811
    options: Options = {**SMALL, **changes}
    result = tacit.answer(QUESTIONS, examples=rows(), model=tiny, output=output, **options)
    assert isinstance(result, AnsweredQuestions)
    return result


def test_answers_with_a_card(tiny: str, tmp_path: Path) -> None:  # noqa: F811
    result = made(tiny, tmp_path / "out.csv")
    assert [row["text"] for row in result.rows] == QUESTIONS
    assert set(result.answers) <= {"music", "travel"}
    promised = Card.from_json((tmp_path / "out.csv.card.json").read_text()).guarantee
    assert promised.epsilon <= 2.0
    assert promised.unit is Unit.RECORD
    assert any("questions" in line for line in promised.not_covered)
    assert not (tmp_path / "out.csv.resume").exists()


def test_other_sets_do_not_change_the_votes_of_a_set(tiny: str) -> None:  # noqa: F811
    """A record more in one set: the scores of every other set are the same, bit by bit."""
    import numpy as np

    from tacit.documents.language_models.labeling import SetReader
    from tacit.jobs.prompted_rows import load_reader

    model = load_reader(tiny)
    sets = [[("play a song", "music")], [], [("fly to rome", "travel"), ("go home", "travel")]]
    changed = [sets[0], [("a new record that is rather long", "travel")], sets[2]]
    before, after = (
        SetReader(model, each, ["music", "travel"], most=2, input_tokens=8, rows=4).scores("where to")
        for each in (sets, changed)
    )
    assert np.array_equal(before[[0, 2]], after[[0, 2]])
    assert not np.array_equal(before[1], after[1])
    alone = SetReader(model, [sets[2]], ["music", "travel"], most=2, input_tokens=8, rows=1).scores("where to")
    assert np.allclose(alone[0], before[2], atol=1e-4)


def test_scores_are_those_of_the_whole_prompt_read_at_once(tiny: str) -> None:  # noqa: F811
    """Padding, positions, the cache and the cut after every label: the same as one plain forward pass."""
    import numpy as np

    from tacit.documents.language_models.labeling import NO_QUESTION, SetReader
    from tacit.jobs.prompted_rows import load_reader

    model = load_reader(tiny)
    torch = model.torch
    reader = SetReader(
        model, [[("play a song", "music")], [("x", "travel"), ("fly", "travel")]], ["music", "travel"], most=3,
        input_tokens=8, rows=3,
    )  # fmt: skip
    plain = model.plain

    def whole(examples: list[tuple[str, str]], question: str, label: str) -> float:
        ids = [*model.special_frame().before, *plain("Every text has a label.\n\n")]
        for text, name in examples:
            ids += [*plain("Text: "), *model.tokens(text, 8), *plain("\nLabel:"), *plain(f" {name}"), *plain("\n\n")]
        ids += [*plain("Text: "), *model.tokens(question, 8), *plain("\nLabel:")]
        name = list(plain(f" {label}"))
        with torch.inference_mode():
            law = model.model(torch.tensor([[*ids, *name]])).logits[0].double().log_softmax(-1)
        return float(sum(law[len(ids) - 1 + place, token] for place, token in enumerate(name)))

    for _ in range(2):  # the cache is as before after each question
        scores = reader.scores("go to town")
    for row, examples in enumerate([[("play a song", "music")], [("x", "travel"), ("fly", "travel")]]):
        for column, label in enumerate(["music", "travel"]):
            expected = whole(examples, "go to town", label) - whole(examples, NO_QUESTION, label)
            assert np.isclose(scores[row, column], expected, atol=1e-3)


def test_users(tiny: str, tmp_path: Path) -> None:  # noqa: F811
    grouped = made(tiny, tmp_path / "grouped.csv", user_column="author")
    alone = made(tiny, tmp_path / "alone.csv", user_column="author", sets="users")
    assert grouped.guarantee.unit is alone.guarantee.unit is Unit.USER
    assert alone.plan.even < grouped.plan.even  # a vote counts twice as much
    assert alone.plan.votes == 40


def test_one_name_is_one_user_however_it_is_spelled(tmp_path: Path) -> None:
    """Two spellings as two users would have two votes, and the promise would be for half of a person."""
    spelled = [row | {"author": f" {row['author']}"} if n >= 40 else row for n, row in enumerate(rows())]
    plan = tacit.answer(
        QUESTIONS, examples=spelled, output=tmp_path / "out.csv", user_column="author", dry_run=True,
        **SMALL | {"sets": "users"},
    )  # fmt: skip
    assert isinstance(plan, AnswerPlan)
    assert plan.votes == 40


def test_a_model_that_mixes_rows_is_refused_before_anything_is_read(
    tiny: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tacit.documents.language_models.labeling import SetReader
    from tacit.jobs import answering

    class Mixing(SetReader):
        """A set's scores depend a little on the sets in the other rows."""

        def scores(self, question: str) -> Floats:
            own = super().scores(question)
            mixed: Floats = own + 1e-12 * own.mean(axis=0)
            return mixed

    monkeypatch.setattr(answering, "SetReader", Mixing)
    with pytest.raises(NoGuaranteeError) as refused:
        made(tiny, tmp_path / "out.csv")
    assert refused.value.code == "rows-differ"
    assert not list(tmp_path.iterdir())
    alone = made(tiny, tmp_path / "alone.csv", user_column="author", sets="users")  # every set is read by itself
    assert len(alone) == len(QUESTIONS)


def test_no_example_with_a_listed_label_answers_by_chance(tiny: str, tmp_path: Path) -> None:  # noqa: F811
    """An error would say that there is none."""
    for sets in (6, "users"):
        result = made(tiny, tmp_path / f"{sets}.csv", labels=("sport", "weather"), sets=sets, user_column="author")
        assert set(result.answers) <= {"sport", "weather"}


def test_a_test_seed_repeats_and_promises_nothing(tiny: str, tmp_path: Path) -> None:  # noqa: F811
    first, second = (made(tiny, tmp_path / name, seed=3) for name in ("a.csv", "b.csv"))
    assert first.answers == second.answers
    assert first.guarantee.notion is Notion.NONE


def test_a_crash_draws_nothing_twice(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    from tacit.training.prompting.votes import VoteLaw

    whole = VoteLaw.draw
    calls: list[int] = []

    def breaking(self: VoteLaw, votes: Ids, source: Source) -> int:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(1)
        return whole(self, votes, source)

    monkeypatch.setattr(VoteLaw, "draw", breaking)
    with pytest.raises(KeyboardInterrupt):
        made(tiny, tmp_path / "out.csv")
    state = (tmp_path / "out.csv.resume").read_text().splitlines()
    kept = [json.loads(line)["answer"] for line in state if "answer" in json.loads(line)]
    assert len(kept) == 2
    monkeypatch.setattr(VoteLaw, "draw", whole)
    with pytest.raises(BadInputError) as again:
        made(tiny, tmp_path / "out.csv")
    assert again.value.code == "unfinished-run"
    with pytest.raises(BadInputError) as reordered:  # the kept answers belong to the first questions
        tacit.answer(QUESTIONS[::-1], examples=rows(), model=tiny, output=tmp_path / "out.csv", resume=True, **SMALL)
    assert reordered.value.code == "other-rows"
    result = made(tiny, tmp_path / "out.csv", resume=True)
    assert [["music", "travel"].index(name) for name in result.answers[:2]] == kept


def test_the_command_and_its_plan(
    tiny: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("\n".join(json.dumps(row) for row in rows()))
    Path("questions.txt").write_text("\n".join(QUESTIONS) + "\n")
    options = [
        "questions.txt", "--examples", "in.jsonl", "--column", "text", "--label-column", "intent", "--labels",
        "music,travel", "-e", "2", "--model", tiny, "--sets", "5", "--physical", "8", "--input-tokens", "8",
    ]  # fmt: skip
    assert run_command(["answer", *options, "--dry-run"]) == 0
    assert "3 questions" in capsys.readouterr().out
    assert run_command(["answer", *options, "-o", "out.csv"]) == 0
    assert Path("out.csv").read_text().startswith("text,answer\n")
    plan = tacit.answer(QUESTIONS, examples="in.jsonl", column="text", dry_run=True, model=tiny, **SMALL)
    assert isinstance(plan, AnswerPlan)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"sets": "users"}, "sets-without-users"),
        ({"sets": 0}, "impossible-sets"),
        ({"labels": ()}, "labels-public-or-listed"),
        ({"epsilon": 1e-8, "delta": 1e-12}, "budget-below-rounding"),
    ],
)
def test_what_is_refused(tiny: str, tmp_path: Path, changes: Options, code: str) -> None:  # noqa: F811
    with pytest.raises((BadParameterError, BadInputError)) as refused:
        made(tiny, tmp_path / "out.csv", **changes)
    assert refused.value.code == code
