"""Requests: the shapes of JSON bodies, and reading them without ever quoting a value back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from tacit.devices import PROCESSOR
from tacit.engines.users import UserRule
from tacit.guarantee import check_epsilon
from tacit.jobs.fields import DocumentsPerUser, UserMode
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.rewrite import RewriteConfig
from tacit.jobs.sketched_rows import SketchConfig
from tacit.jobs.synthesize_config import MatchingConfig
from tacit.jobs.values import MOST_SENTENCES
from tacit.serve.errors import RequestError, ServiceError
from tacit.serve.reading import MOST_VALUES, READ_AT_ONCE, bad_field, read_object, unknown_field

Name = Annotated[str, Field(min_length=1, max_length=200)]
PlainName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
"""A name that is written down: databases and terminals take no control characters."""
Names = Annotated[list[Name], Field(max_length=100, fail_fast=True)]
Options = Annotated[dict[str, str | bool | int | float | None], Field(max_length=50)]
MechanismName = Annotated[str, Field(min_length=1, max_length=100, examples=["santext+"])]
Epsilon = Annotated[float, Field(gt=0, le=1e6, examples=[2.0])]
MOST_DRAWS = 10
MOST_LABEL_COLUMNS = 4
MOST_ROUNDS = 5
"""In which sentences are varied: each takes about as long as drawing the corpus."""


class Message(BaseModel):
    """A JSON object that a client sends; its types are those of JSON, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


def option(name: str, *, required: bool = False) -> Any:
    """The field of a request that is an option of `RewriteConfig`: its default and its meaning. The type beside it is
    what strangers may ask for within the limits of a service."""
    field = RewriteConfig.model_fields[name]
    if required:
        return Field(description=field.description)
    default = field.get_default(call_default_factory=True, validated_data={})
    return Field(list(default) if isinstance(default, tuple) else default, description=field.description)


class RewriteRequest(Message):
    """One text or several, and how to rewrite them."""

    text: str | None = None
    texts: Annotated[list[str], Field(fail_fast=True)] | None = None
    mechanism: MechanismName = option("mechanism", required=True)
    epsilon: Epsilon = option("epsilon", required=True)
    options: Options = option("options")
    draws: Annotated[int, Field(ge=1, le=MOST_DRAWS)] = 1
    dataset: PlainName | None = option("dataset")
    user: PlainName | None = None
    tokens: bool = False
    stream: bool = False


class CalibrateRequest(Message):
    """The epsilon of one unit that keeps a whole text of so many tokens within `document_epsilon`."""

    mechanism: MechanismName = option("mechanism", required=True)
    options: Options = option("options")
    document_epsilon: Epsilon
    tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 20


class CurveRequest(Message):
    """Expected change of public words at several budgets."""

    mechanism: MechanismName = option("mechanism", required=True)
    options: Options = option("options")
    epsilons: Annotated[list[Epsilon], Field(min_length=1, max_length=25, fail_fast=True)]


class AuditRequest(Message):
    """The exact law of a word mechanism held against its claim; `words` are public words to compare."""

    mechanism: MechanismName = option("mechanism", required=True)
    epsilon: Epsilon = option("epsilon", required=True)
    options: Options = option("options")
    words: Annotated[list[Name], Field(min_length=2, max_length=200, fail_fast=True)] | None = None


class JobSettings(Message):
    """How the file of a job is rewritten: options of `RewriteConfig`, within the limits of a service."""

    mechanism: MechanismName = option("mechanism", required=True)
    epsilon: Epsilon = option("epsilon", required=True)
    options: Options = option("options")
    columns: Names = option("columns")
    keep: Names = option("keep")
    user_column: Name | None = option("user_column")
    user_mode: UserMode = option("user_mode")
    documents_per_user: Annotated[DocumentsPerUser, Field(le=1_000_000)] = option("documents_per_user")
    dataset: PlainName | None = option("dataset")

    def config(self, input: Path, output: Path) -> RewriteConfig:
        """The configuration of the job on files; the service itself keeps the ledger."""
        values = self.model_dump(exclude={"dataset"})
        return RewriteConfig(**values, input=str(input), output=str(output), device=PROCESSOR)

    def named_columns(self) -> tuple[str, ...]:
        """All columns that are named."""
        return (*self.columns, *self.keep, *(() if self.user_column is None else (self.user_column,)))

    def users(self) -> UserRule | None:
        """How the rows of one user are treated."""
        return self.config(Path(), Path()).users()


def corpus_option(name: str, *, required: bool = False) -> Any:
    """The field of a request that is an option of `MatchingConfig`: its default and its meaning."""
    field = MatchingConfig.model_fields[name]
    if required:
        return Field(description=field.description)
    default = field.get_default(call_default_factory=True, validated_data={})
    return Field(list(default) if isinstance(default, tuple) else default, description=field.description)


def guide_option(name: str) -> Any:
    """The required field of a request that is an option of `GuideConfig`, with its meaning."""
    return Field(description=GuideConfig.model_fields[name].description)


class SynthesisSettings(Message):
    """How a corpus is released in place of the rows of a file: options of `MatchingConfig`, within the limits of a
    service."""

    epsilon: Epsilon = corpus_option("epsilon", required=True)
    delta: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="What every probability may grow by; by default well below 1 / records."
    )
    column: Name | None = corpus_option("column")
    label_column: Name | None = Field(None, description="The column of labels.")
    label_columns: Annotated[list[Name], Field(max_length=MOST_LABEL_COLUMNS, fail_fast=True)] = Field(
        [], description="Several columns of labels, in place of the one: labels of all columns stay together."
    )
    labels: Annotated[list[Name], Field(max_length=1_000, fail_fast=True)] = corpus_option("labels")
    labels_of: dict[Name, Annotated[list[Name], Field(max_length=1_000)]] = Field(
        {},
        max_length=MOST_LABEL_COLUMNS,
        description="With several label columns: all labels of each, from public knowledge.",
    )
    declare_labels_public: bool = corpus_option("declare_labels_public")
    other: Name | None = corpus_option("other")
    bins: Annotated[list[float], Field(max_length=100, fail_fast=True)] = corpus_option("bins")
    topics: Annotated[int, Field(ge=1, le=1_000)] | None = corpus_option("topics")
    user_column: Name | None = corpus_option("user_column")
    pure: bool = corpus_option("pure")
    sentences: Annotated[int, Field(ge=1, le=MOST_SENTENCES)] | Literal["auto"] = corpus_option("sentences")
    rows: Annotated[int, Field(ge=1, le=1_000_000)] | None = corpus_option("rows")
    evolve: Annotated[int, Field(ge=0, le=MOST_ROUNDS)] = corpus_option("evolve")
    dataset: PlainName | None = corpus_option("dataset")

    def sketch_config(self, input: Path, output: Path) -> SketchConfig:
        """The configuration of the sketch; the service itself keeps the ledger."""
        values = self.model_dump(exclude={"dataset", "rows", "delta", "evolve"})
        if self.label_column is None:
            del values["label_column"]
        return SketchConfig(
            **values, delta="auto" if self.delta is None else self.delta, data=str(input), output=output, force=True
        )

    def text_columns(self) -> tuple[str, ...]:
        """The column of texts, if it is named."""
        return () if self.column is None else (self.column,)

    def other_columns(self) -> tuple[str, ...]:
        """The other columns that are named."""
        named = (self.label_column, *self.label_columns, self.user_column)
        return tuple(name for name in named if name is not None)

    def named_columns(self) -> tuple[str, ...]:
        """All columns that are named."""
        return (*self.text_columns(), *self.other_columns())


class ExpectRequest(Message):
    """How many rows there are, of how many labels (none with public topics), and the epsilon for each of them."""

    epsilon: Epsilon = corpus_option("epsilon", required=True)
    rows: Annotated[int, Field(ge=1, le=1_000_000_000)]
    labels: Annotated[int, Field(ge=1, le=10_000)] | None = None
    pure: bool = corpus_option("pure")


class GuideRequest(Message):
    """Answers to the questions of the guide; what is left out is answered on the safe side."""

    protect: Literal["word", "text", "person"] = guide_option("protect")
    seen_by: Literal["curator", "nobody"] = guide_option("seen_by")
    purpose: Literal["share", "classifier", "collect", "topics"] = guide_option("purpose")
    private_rows: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = Field(None, description="How many rows.")
    rows_per_person: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="How many rows one person has at most; several, if that is not said."
    )
    column: PlainName | None = Field(None, description="The column of texts.")
    label_column: PlainName | None = Field(None, description="The column of labels.")
    user_column: PlainName | None = Field(None, description="The column that says whose row it is.")
    epsilon: Epsilon | None = Field(None, description="Another privacy budget than the one that is recommended.")


M = TypeVar("M", bound=Message)
R = TypeVar("R")


async def read_message(request: Request, kind: type[M]) -> M:
    """The JSON body of a request, or a refusal: 415, 400, 413 (while it streams in) or 422."""
    check_json(request.headers.get("content-type", ""))
    data = await request.body()
    return await beside(len(data), lambda: parse_message(data, kind))


async def beside(size: int, function: Callable[[], R]) -> R:
    """The result, worked out beside the event loop unless there is little to do."""
    return function() if size <= READ_AT_ONCE else await asyncio.to_thread(function)


def check_json(content_type: str) -> None:
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise ServiceError(
            415, RequestError("content-type-is-not-json", "send JSON with the header 'Content-Type: application/json'")
        )


def parse_message(data: bytes, kind: type[M], most_values: int = MOST_VALUES) -> M:
    content = read_object(data, kind.model_fields, most_values)
    epsilon = content.get("epsilon")
    if isinstance(epsilon, float):
        check_epsilon(epsilon)  # says more than the schema: NaN, infinity, 1e308
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ServiceError(422, complaint(error, kind)) from None


def complaint(error: ValidationError, kind: type[Message]) -> RequestError:
    """The first mistake in a message. Names of fields are ours; everything else could be the client's text and is not
    quoted."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = first["loc"][0] if first["loc"] else None
    if first["type"] == "extra_forbidden" or field not in kind.model_fields:
        return unknown_field(kind.model_fields)
    if first["type"] == "string_pattern_mismatch":
        reason = "leave out control characters, such as line breaks"
    else:
        reason = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return bad_field(field, reason)


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8: JSON can smuggle in half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
