"""`/v1/guide`: the questions and the advice of `tacit guide`, without any file."""

from __future__ import annotations

from tacit.cli.command_line import command_line
from tacit.jobs.guide.advice import guide
from tacit.jobs.guide.questions import QUESTIONS
from tacit.matching.whole_numbers import GRID
from tacit.serve.expecting import expected_of
from tacit.serve.guiding import advice_of, guide_questions
from tacit.serve.messages import ExpectRequest, GuideRequest
from tacit.serve.pool import Pool

NO_POOL: Pool = None  # type: ignore[assignment]  # neither looks at mechanisms


def test_the_questions_are_those_of_the_command_but_for_files() -> None:
    answered = guide_questions().questions
    assert [question.sentence for question in answered] == [question.sentence for question in QUESTIONS[:-1]]
    assert [choice.name for choice in answered[0].choices] == ["word", "text", "person"]


def test_the_advice_is_that_of_the_command() -> None:
    answers = {"protect": "person", "seen_by": "curator", "purpose": "share", "private_rows": 3_000}
    answer = advice_of(command_line, NO_POOL, GuideRequest.model_validate(answers))
    advice = guide(None, **answers)
    assert answer.commands == [command_line(each) for each in (*advice.before, advice.config)]
    assert (answer.promise, answer.not_covered) == (advice.promise, list(advice.not_covered))
    assert (answer.job, answer.unit, answer.epsilon) == ("synthesize", "user", advice.epsilon)
    assert answer.expected


def test_what_can_be_promised_without_delta() -> None:
    usual, pure = (
        expected_of(NO_POOL, ExpectRequest(epsilon=1.0, rows=5_000, labels=3, pure=pure)) for pure in (False, True)
    )
    assert usual.delta > 0
    assert pure.delta == 0
    assert pure.count_noise > 1
    assert GRID > usual.count_noise > 1
