"""The guide: exactly one rule for all answers, a command that parses, no promise that the command does not keep, and
nothing seen of a file but its header and its number of rows."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

import tacit
from tacit.cli.command_line import command_words
from tacit.cli.generated import _given_to
from tacit.cli.main import app
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Unit
from tacit.jobs.config import Config
from tacit.jobs.guide.advice import Advice, guide
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.guide.measures import Basis, expectation_sentence, expected, measured_scores
from tacit.jobs.guide.questions import QUESTIONS, Purpose, Reader, Secret
from tacit.jobs.guide.rules import EPSILON, GAPS, PROMISES, RULES, Gap, Way, way_for
from tests.jobs.guide.combinations import answers, write_files

MISSING_COLUMN = "which-column-for"

Advised = tuple[dict[str, Any], str | None, Advice | str]
"""Answers, the kind of file, and the advice or the code of the error in its place."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_files(tmp_path_factory.mktemp("guide"))


@pytest.fixture(scope="module")
def advices(files: dict[str, Path]) -> list[Advised]:
    """The advice for every combination of answers and every kind of file, or the code of the error in its place."""
    every_advice: list[Advised] = []
    sources: list[tuple[str | None, str | None]] = [(None, None), ("table", None), ("table", "public"), ("lines", None)]
    for given, (source, public) in itertools.product(answers(), sources):
        more = {} if public is None else {"public_text": str(files[public])}
        data = None if source is None else str(files[source])
        try:
            every_advice.append((given, source, guide(data, **given, **more)))
        except BadInputError as error:
            every_advice.append((given, source, error.code))
    return every_advice


# Rules ----------------------------------------------------------------------------------------------------------------


def test_exactly_one_rule_fits_every_combination_of_answers() -> None:
    for secret, reader, purpose, several in itertools.product(Secret, Reader, Purpose, (False, True)):
        assert sum(rule.fits(secret, reader, purpose, several=several) for rule in RULES) == 1


def test_every_way_has_a_rule_a_budget_and_a_promise() -> None:
    assert {rule.way for rule in RULES} == set(Way) == set(EPSILON) == set(PROMISES)
    assert set(GAPS) == set(Gap)


def test_what_the_questions_are_for() -> None:
    several = {"several": True}
    assert way_for(Secret.WORD, Reader.CURATOR, Purpose.SHARE, **several) is Way.WORDS
    assert way_for(Secret.TEXT, Reader.NOBODY, Purpose.CLASSIFIER, **several) is Way.CODEBOOK
    assert way_for(Secret.TEXT, Reader.CURATOR, Purpose.CLASSIFIER, **several) is Way.TRAINING
    assert way_for(Secret.PERSON, Reader.CURATOR, Purpose.CLASSIFIER, **several) is Way.FEDERATED
    assert way_for(Secret.PERSON, Reader.CURATOR, Purpose.CLASSIFIER, several=False) is Way.TRAINING
    assert way_for(Secret.PERSON, Reader.CURATOR, Purpose.TOPICS, **several) is Way.TOPICS
    assert way_for(Secret.TEXT, Reader.CURATOR, Purpose.COLLECT, **several) is Way.SKETCH


def test_there_are_at_most_five_questions_and_each_has_an_option() -> None:
    assert len(QUESTIONS) <= 5
    assert {name for question in QUESTIONS for name in question.fields} <= set(GuideConfig.model_fields)


# Commands -------------------------------------------------------------------------------------------------------------


def parsed(words: list[str], kind: type[Config]) -> Config:
    """The configuration that the real command line makes of these words."""
    command: Any = app
    context = click.Context(app, info_name="tacit")
    rest = words[1:]
    while isinstance(command, click.Group):
        command = command.get_command(context, rest[0])
        rest = rest[1:]
    with command.make_context(command.name, list(rest), parent=context) as made:
        return kind(**_given_to(kind, made.params))


def test_every_recommended_command_is_valid(
    advices: list[Advised],
) -> None:
    for _, _, advice in advices:
        if isinstance(advice, str):
            continue
        for config in (*advice.before, advice.config):
            assert parsed(command_words(config), type(config)) == config


def test_only_a_column_that_is_not_there_is_asked_for(
    advices: list[Advised],
) -> None:
    for given, source, advice in advices:
        whole = given["protect"] is not Secret.WORD
        person = given["protect"] is Secret.PERSON and given.get("rows_per_person") != 1
        model = whole and given["seen_by"] is Reader.CURATOR and given["purpose"] is Purpose.CLASSIFIER
        missing = source == "lines" and (person or model)
        assert (advice == MISSING_COLUMN) is missing
        assert isinstance(advice, Advice) is not missing


def test_the_column_of_persons_is_used_exactly_when_persons_have_several_rows(
    advices: list[Advised],
) -> None:
    for given, _, advice in advices:
        if isinstance(advice, Advice):
            wanted = given["protect"] is Secret.PERSON and given.get("rows_per_person") != 1
            assert (getattr(advice.config, "user_column", None) is not None) is wanted
            assert (advice.unit is Unit.USER) is wanted


def test_training_fits_few_rows(files: dict[str, Path]) -> None:
    given = {"seen_by": "curator", "purpose": "classifier"}
    assert guide(str(files["table"]), protect="text", **given).config.model_dump()["batch"] == 7
    assert guide(protect="text", private_rows=100_000, **given).config.model_dump()["batch"] == 256
    few = guide(protect="person", private_rows=400, rows_per_person=4, **given)
    assert few.config.model_dump()["cohort"] == 25


# Promises -------------------------------------------------------------------------------------------------------------

ROWS = [{"message": "where is my money", "topic": "refund", "customer": "c1"}] * 3


@cache
def _sketched(user: bool, labels: str, epsilon: float) -> Guarantee:
    names: dict[str, Any] = {
        "declared": {"label_column": "topic", "declare_labels_public": True},
        "listed": {"label_column": "topic", "labels": ("refund", "b")},
        "topics": {"topics": 4},
    }[labels]
    more = {"user_column": "customer"} if user else {}
    return tacit.sketch(ROWS, column="message", epsilon=epsilon, **names, **more).guarantee


def sketch_guarantee(config: Any) -> Guarantee:
    """What the release of a sketch with these options promises, of other rows."""
    labels = "topics" if config.topics else "listed" if config.labels else "declared"
    return _sketched(config.user_column is not None, labels, config.epsilon)


def rewrite_guarantee(config: Any, folder: Path) -> Guarantee:
    """What the card of a release with these options promises; no codebook of public text has to be there for it."""
    label = config.randomize or (config.keep[0] if config.keep else None)
    return _rewritten(folder, config.level, config.epsilon, config.user_column, label, config.randomize, config.labels)


@cache
def _rewritten(
    folder: Path,
    level: str | None,
    epsilon: float,
    user: str | None,
    label: str | None,
    random: str | None,
    labels: Any,
) -> Guarantee:
    named = folder / f"{user}-{label}.csv"
    named.write_text(f"words,{user or 'u'},{label or 'l'}\nhello,a,b\n")
    noisy = {"randomize": random, "labels": labels} if random else {}
    kept = {"keep": label} if label and not random else {}
    more = {"user_column": user} if user else {}
    return tacit.rewrite(
        str(named), columns="words", level=level, epsilon=epsilon, dry_run=True, **noisy, **kept, **more
    ).guarantee


def training_guarantee(config: Any) -> Guarantee:
    """What the plan of a training with these options promises."""
    pytest.importorskip("dp_accounting")
    return _trained(config.job, config.epsilon)


@cache
def _trained(job: str, epsilon: float) -> Guarantee:
    from tacit.jobs.registry import config_class
    from tacit.jobs.training.planning import plan_for_records
    from tacit.jobs.training.users import plan_for_users

    more = {"user_column": "user", "cohort": 250} if job.startswith("federate") else {"batch": 250}
    config: Any = config_class(job)(data="in.csv", output="out", epsilon=epsilon, epochs=1, **more)
    planned = plan_for_users(config, 1_000) if "cohort" in more else plan_for_records(config, epsilon, 1_000)
    return planned.guarantee(steps=planned.steps, secure=True, what="training", parameters={})


def guarantee_of(advice: Advice, folder: Path) -> Guarantee:
    """What the code promises that has to keep the promise of an advice."""
    if advice.config.job in ("synthesize", "sketch"):
        return sketch_guarantee(advice.config)
    if advice.config.job == "rewrite":
        return rewrite_guarantee(advice.config, folder)
    return training_guarantee(advice.config)


def test_no_promise_is_made_that_the_command_does_not_keep(advices: list[Advised], tmp_path: Path) -> None:
    checked: set[str] = set()
    for _, _, advice in advices:
        if isinstance(advice, str) or advice.config.to_toml() in checked:
            continue
        checked.add(advice.config.to_toml())
        kept = guarantee_of(advice, tmp_path)
        assert kept.is_private
        assert (advice.unit, advice.model, advice.notion) == (kept.unit, kept.model, kept.notion)
        assert kept.epsilon <= advice.epsilon * (1 + 1e-9)
        assert (Gap.LABELS in advice.gaps) is bool(getattr(advice.config, "keep", ()))
        assert (Gap.SEVERAL_ROWS in advice.gaps) is (kept.unit in (Unit.RECORD, Unit.DOCUMENT))
        assert len(advice.not_covered) == len(set(advice.gaps))
    assert len(checked) > 60


def test_secrets_are_covered_by_the_unit_that_was_asked_for(
    advices: list[Advised],
) -> None:
    """A promise for a larger unit covers a smaller secret, and never the other way round."""
    for given, _, advice in advices:
        if isinstance(advice, str):
            continue
        if given["protect"] is Secret.PERSON:
            assert advice.unit is Unit.USER or given.get("rows_per_person") == 1
        if given["protect"] is Secret.TEXT:
            assert advice.unit in (Unit.DOCUMENT, Unit.RECORD)
        if given["seen_by"] is Reader.NOBODY:
            assert advice.model.value == "local"


def test_a_label_that_nobody_may_see_is_never_copied(
    advices: list[Advised],
) -> None:
    for given, _, advice in advices:
        if isinstance(advice, Advice) and given["protect"] is not Secret.WORD:
            assert not getattr(advice.config, "keep", ())


def test_a_private_file_is_no_public_text(files: dict[str, Path]) -> None:
    with pytest.raises(BadInputError) as raised:
        guide(str(files["table"]), protect="text", seen_by="curator", purpose="share", public_text=str(files["table"]))
    assert raised.value.code == "private-as-public"


# What is looked at ----------------------------------------------------------------------------------------------------


def test_nothing_but_header_and_row_count_matters(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    texts = []
    for word in ("aids", "plague"):
        path.write_text("message,intent\n" + f"i have {word},{word}\n" * 700)
        advice = guide(str(path), protect="text", seen_by="curator", purpose="share")
        texts.append(json.dumps(advice.to_dict()))
        assert word not in texts[-1]
        assert word not in str(advice)
    assert texts[0] == texts[1]


def test_columns_are_known_by_their_names(tmp_path: Path) -> None:
    given = {"protect": "person", "seen_by": "curator", "purpose": "share"}
    rows = [{"Patient ID": 1, "note_date": 2, "Clinical Notes": "x", "ICD": 3}]
    config: Any = guide(rows, **given).config
    assert (config.column, config.label_column, config.user_column) == ("Clinical Notes", None, "Patient ID")
    assert config.topics == 64
    config = guide(rows, label_column="ICD", **given).config
    assert (config.label_column, config.topics) == ("ICD", None)


def test_a_file_without_a_telling_name_is_asked_for_its_column() -> None:
    with pytest.raises(BadInputError) as raised:
        guide([{"a": "x", "b": "y"}], protect="text", seen_by="curator", purpose="share")
    assert raised.value.code == "which-column"


@pytest.mark.parametrize(("purpose", "warned"), [("classifier", True), ("share", False)])
def test_a_format_that_the_command_cannot_be_given_asks_for_another_file(
    tmp_path: Path, purpose: str, warned: bool
) -> None:
    """A training tells formats by names: the recommended command would refuse the file."""
    path = tmp_path / "excel.csv"
    path.write_text("text;label\n" + "a;x\nb;y\n" * 200, encoding="utf-8")
    advice = guide(str(path), protect="text", seen_by="curator", purpose=purpose, format="csv-semicolon")
    assert any("convert the file first" in remark.rendered() for remark in advice.remarks) is warned


def test_a_first_line_that_may_be_text_is_never_quoted(tmp_path: Path) -> None:
    """In a file without a header the names of the columns are a private row."""
    path = tmp_path / "in.csv"
    path.write_text("message,please review my note: I have HIV,my label is secret to me\n" * 3)
    advice = guide(str(path), protect="text", seen_by="curator", purpose="share")
    assert "HIV" not in str(advice)
    assert "secret to me" not in json.dumps(advice.to_dict())
    with pytest.raises(BadInputError) as raised:
        guide(str(path), protect="text", seen_by="curator", purpose="classifier")
    assert "HIV" not in f"{raised.value} {dict(raised.value.fields)}"


def test_open_questions_are_named() -> None:
    with pytest.raises(BadParameterError) as raised:
        guide(protect="text")
    assert raised.value.fields["missing"] == ("seen_by", "purpose")


# Expectations ---------------------------------------------------------------------------------------------------------


def test_every_number_says_where_it_comes_from() -> None:
    for measured in measured_scores():
        assert measured.epsilon == EPSILON[measured.way]
        assert measured.seeds >= 1
        assert measured.version
        assert 0 <= measured.score <= 1
    ways = {measured.way for measured in measured_scores()}
    assert {Way.MATCHING, Way.TOPICS, Way.WORDS} <= ways


def test_scores_between_two_sizes_are_interpolated_and_said_to_be() -> None:
    sizes = [each for each in measured_scores() if each.way is Way.MATCHING and each.data_set == "snips"]
    first, second, *_ = sorted(sizes, key=lambda each: each.rows)
    middle = expected(sizes, round((first.rows * second.rows) ** 0.5))
    assert middle.basis is Basis.INTERPOLATED
    assert middle.score == pytest.approx((first.score + second.score) / 2, abs=0.01)
    assert "interpolated" in expectation_sentence(middle)
    assert expected(sizes, first.rows).basis is Basis.MEASURED
    assert expected(sizes, 1).basis is Basis.BELOW
    assert expected(sizes, 10**9).basis is Basis.ABOVE
    assert expected(sizes, None).score is None


def test_persons_count_where_the_promise_is_made_to_persons() -> None:
    given = {"seen_by": "curator", "purpose": "share", "private_rows": 10_000, "rows_per_person": 10}
    assert guide(protect="person", **given).rows == 1_000
    assert guide(protect="text", **given).rows == 10_000
    assert guide(protect="person", seen_by="curator", purpose="share", private_rows=10_000).rows is None
