"""The answers of the service: the shapes of its JSON, of which the OpenAPI description is made (`description`).

All answers are made as these models but one: a rewriting answer is put together faster than it could be checked
(`texts`), so `RewriteAnswer` and its parts only describe it, and the tests hold real answers against them.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

JsonObject = dict[str, object]
Scalar = str | int | float | bool | None


class Answer(BaseModel):
    """A JSON object that the service sends."""

    model_config = ConfigDict(extra="forbid")


class ErrorFacts(Answer):
    """The kind of a refusal (`code`), one sentence for people (`message`), and for programs the code of its cause
    (docs/errors.md) with the values that the sentence names, such as the number of a row."""

    code: str
    message: str
    cause: str
    fields: dict[str, int | float | str | None]


class Refusal(Answer):
    """Every error looks like this."""

    error: ErrorFacts


class Draw(Answer):
    """The released texts; with `tokens`, each original token beside what it became."""

    texts: list[str]
    pieces: list[list[tuple[str, str]]] | None


class SpentBudget(Answer):
    """The cost of a release for its key: no epsilon where none is proven for whole texts, nothing remaining without a
    limit."""

    epsilon: float | None
    delta: float | None
    remaining: float | None


class RewriteAnswer(Answer):
    """Released texts and what was promised; the guarantees are privacy cards."""

    mechanism: str
    draws: list[Draw]
    units: list[int]
    spent: SpentBudget
    guarantee: JsonObject
    document_guarantee: JsonObject | None
    document_note: str | None
    plain: str


class EpsilonFacts(Answer):
    default: float
    low: float
    high: float


class OptionFacts(Answer):
    name: str
    default: Scalar
    help: str
    choices: list[str]
    low: float | None
    high: float | None


class MechanismFacts(Answer):
    name: str
    title: str
    level: str
    notion: str
    unit: str
    paper: str
    summary: str
    available: bool
    why_not: str | None
    epsilon: EpsilonFacts
    options: list[OptionFacts]


class Mechanisms(Answer):
    """All mechanisms, and the name of the usual one of each level."""

    default: dict[str, str]
    mechanisms: list[MechanismFacts]


class Calibrated(Answer):
    epsilon: float
    guarantee: JsonObject


class CurvePoint(Answer):
    """Shares of words: that change, and that the best attacker guesses (null where there is no closed law)."""

    epsilon: float
    changed: float
    guessed: float | None


class Curve(Answer):
    points: list[CurvePoint]
    how: str
    blind: float | None
    guessed_how: str | None


class AuditReport(Answer):
    """A report of findings, as `tacit audit` writes it."""

    model_config = ConfigDict(extra="allow")

    title: str
    light: str
    refuted: bool
    sections: list[JsonObject]


class JobFacts(Answer):
    """A job as its owner sees it.

    kind        'rewrite', or 'synthesize' for a corpus in place of the rows
    name        what the client calls its file
    format      format of the upload and of a rewritten result, such as csv or jsonl.gz; a corpus is always csv
    error       why it failed, in one sentence
    resumable   a failed job that can go on with the same noise
    """

    id: str
    kind: str
    name: str
    format: str
    settings: JsonObject
    state: str
    rows: int
    units: int
    bytes_done: int
    total_bytes: int
    created: str
    expires: str
    error: str | None
    resumable: bool


class Jobs(Answer):
    jobs: list[JobFacts]


class GuideChoice(Answer):
    """An answer that can be given, and what it means."""

    name: str
    meaning: str


class GuideQuestion(Answer):
    """A plain question, and the fields that answer it; no choices where numbers are asked for."""

    fields: list[str]
    sentence: str
    choices: list[GuideChoice]


class GuideQuestions(Answer):
    """The questions of the guide."""

    questions: list[GuideQuestion]


class GuideAdvice(Answer):
    """One job that fits, as commands to paste and as a call in Python, with what it promises, what it does not, and
    what to expect from it (`compared`: from another way that may do better)."""

    job: str
    commands: list[str]
    python: str
    epsilon: float
    unit: str
    promise: str
    not_covered: list[str]
    expected: list[str]
    compared: list[str]
    remarks: list[str]


class Expected(Answer):
    """The promise of a corpus in place of so many rows, and how well it can be expected to do.

    delta           as it is chosen for so many records; 0 where epsilon alone is promised
    count_noise     in 95 of 100 releases, the number of rows of a label is right to within this
    share_noise     the same for the share of a label of average size
    measured        what was measured with so many rows of public data sets, one sentence each
    measured_epsilon   the epsilon of these measurements
    """

    delta: float
    count_noise: float
    share_noise: float
    measured: list[str]
    measured_epsilon: float


class FigureFacts(Answer):
    """A drawing as SVG, whose colors are classes, and what it shows in words."""

    svg: str
    description: str


class LabelFacts(Answer):
    """A label of a released corpus: its color class, and some of its rows."""

    name: str
    color: str
    rows: list[str]


class CorpusView(Answer):
    """A released corpus at a glance. Everything here was released or is public."""

    summary: str
    card: list[tuple[str, str]]
    labels: list[LabelFacts]
    map: FigureFacts
    proportions: FigureFacts
    curve: FigureFacts | None


class ApartFacts(Answer):
    measure: str
    releases: int


class UnitSpent(Answer):
    unit: str
    epsilon: float
    delta: float
    releases: int


class KeySpent(Answer):
    """The budget spent under a key: the part held against its limit, the same by the unit of the releases, and the part
    that no sum holds."""

    epsilon: float
    delta: float
    releases: int
    by_unit: list[UnitSpent]
    apart: list[ApartFacts]


class KeyLimit(Answer):
    epsilon: float
    delta: float


class KeyFacts(Answer):
    name: str
    spent: KeySpent
    limit: KeyLimit | None


class LimitFacts(Answer):
    kind: str
    dataset: str | None
    epsilon: float
    delta: float


class LedgerReleaseFacts(Answer):
    id: int
    time: str
    dataset: str
    unit: str
    mechanism: str
    epsilon: float | None
    delta: float | None
    state: str


class Overview(Answer):
    """The budget that a key has spent, its latest releases, and the limits that concern it."""

    dataset_limits: list[LimitFacts]
    key: KeyFacts
    releases: list[LedgerReleaseFacts]


class ReportFacts(Answer):
    name: str
    title: str
    kind: str
    created: str
    url: str


class Reports(Answer):
    reports: list[ReportFacts]


class Health(Answer):
    status: str
    version: str
    ledger: str
    keys: str
