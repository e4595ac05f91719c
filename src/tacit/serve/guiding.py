"""`/v1/guide`: the questions of the guide and its advice, the same as `tacit guide` gives.

Nothing private is asked for: no file is sent or opened, and names of columns are those that the caller types. The
question about public text is left to the command, because its answer is the name of a file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from tacit.jobs.config import Config
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.guide.questions import QUESTIONS
from tacit.serve.answers import GuideAdvice, GuideChoice, GuideQuestion, GuideQuestions
from tacit.serve.description import WITH_BODY, answers, body_of
from tacit.serve.messages import GuideRequest
from tacit.serve.pool import Pool
from tacit.serve.texts import json_response

OF_FILES = "public_text"
CommandWriter = Callable[[Config], str]
"""How a job is written as a command."""


def add_guide(app: FastAPI, advise: Callable[[Request], Awaitable[Response]]) -> None:
    """Give an application the two routes of the guide; `advise` answers with `advice_of`."""

    @app.get("/v1/guide", responses=answers(GuideQuestions), tags=["catalog"])
    async def questions() -> Response:
        """The questions of the guide."""
        return json_response(guide_questions())

    @app.post(
        "/v1/guide", openapi_extra=body_of(GuideRequest), responses=answers(GuideAdvice, *WITH_BODY), tags=["catalog"]
    )
    async def advice(request: Request) -> Response:
        """One job that fits the answers, what it promises and what to expect from it; nothing private is asked for."""
        return await advise(request)


def guide_questions() -> GuideQuestions:
    """The questions that a caller can answer without a file."""
    return GuideQuestions(
        questions=[
            GuideQuestion(
                fields=list(question.fields),
                sentence=question.sentence,
                choices=[GuideChoice(name=str(name), meaning=meaning) for name, meaning in question.choices.items()],
            )
            for question in QUESTIONS
            if OF_FILES not in question.fields
        ]
    )


def advice_of(write: CommandWriter | None, pool: Pool, request: GuideRequest) -> GuideAdvice:
    """The advice for some answers, with commands as `write` writes them; without it, as calls in Python."""
    # The rules and what was measured load with the first question.
    from tacit.jobs.guide.advice import python_call, run
    from tacit.jobs.guide.measures import expectation_sentence

    write = write or python_call
    advice = run(GuideConfig.model_validate(request.model_dump()))
    return GuideAdvice(
        job=advice.config.job,
        commands=[write(each) for each in (*advice.before, advice.config)],
        python=python_call(advice.config),
        epsilon=advice.epsilon,
        unit=advice.unit.value,
        promise=advice.promise,
        not_covered=list(advice.not_covered),
        expected=[expectation_sentence(each) for each in advice.expected],
        compared=[expectation_sentence(each) for each in advice.compared],
        remarks=[each.rendered() for each in advice.remarks],
    )
