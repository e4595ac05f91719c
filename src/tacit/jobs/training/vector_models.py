"""Classifiers of vectors in place of texts, their folder, and their predictions.

A folder holds the head, what it reads (so that texts can be predicted for as well: they are encoded without noise) and
the card. The card of a head on released vectors is that of the vectors, since training on them is post-processing; the
card of a head on private vectors is that of the noisy sums it was made from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tacit.account.delta import automatic_delta
from tacit.account.release_charge import ReleaseCharge
from tacit.arrays import Floats
from tacit.atomic import draft_folder
from tacit.card import Card
from tacit.embeddings.heads import VectorHead, class_numbers, private_head, released_head
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.groups import Answers, wanted_groups
from tacit.evaluation.predictions import prediction_section
from tacit.guarantee import Guarantee, Model, Notion, Unit, VoidReason
from tacit.jobs.charging import charging_rows
from tacit.jobs.embed import digests_of, mechanism_again
from tacit.jobs.training.result import VectorTrainingResult
from tacit.labels import check_labels
from tacit.lineage import CARD, read_card
from tacit.mechanism import TEST_SEED_REASON
from tacit.noise.source import new_source
from tacit.places import refuse_taken_folder
from tacit.report import Report
from tacit.text.files import read_columns, write_columns
from tacit.text.files.memory import is_in_memory, name_of
from tacit.text.files.vectors import read_vectors
from tacit.training.origin import released_text

if TYPE_CHECKING:
    from tacit.jobs.predict import PredictConfig, PredictionResult
    from tacit.jobs.train import TrainClassify

SETTINGS: Final = "vectors.json"
HEAD: Final = "head.npz"
CARD_SUFFIX: Final = ".card.json"
USED: Final = frozenset(
    {
        "vectors",
        "label_column",
        "text_column",
        "labels",
        "epsilon",
        "delta",
        "replace_one",
        "seed",
        "output",
        "test",
        "group_column",
        "by_class",
        "ledger",
        "dataset",
    }
)
"""The options of a training that mean something for vectors."""


def is_vector_model(folder: Path) -> bool:
    """Whether a folder holds a classifier of vectors."""
    return (folder / SETTINGS).is_file()


def train_on_vectors(config: TrainClassify) -> VectorTrainingResult:
    """A linear classifier of vectors, in its folder, with its card."""
    refuse_taken_folder(config.output)
    _check_options(config)
    with charging_rows(config, config.vectors, f"tacit {config.job}") as charge:
        return _trained(config, charge)


def _trained(config: TrainClassify, charge: ReleaseCharge) -> VectorTrainingResult:
    made_by: Mapping[str, object] = {}
    if config.epsilon is None:
        head, promised, made_by = _of_released(config)
    else:
        head, promised = _of_private(config, charge)
    configuration = config.identity()
    card = Card(promised, configuration=configuration)
    with draft_folder(config.output) as draft:
        np.savez(draft / HEAD, weights=head.weights, offsets=head.offsets)
        settings = {"labels": list(head.labels), "label_column": config.label_column, "text_column": config.text_column,
                    "made_by": made_by, "digests": digests_of(promised.parameters),
                    "dimension": int(head.weights.shape[1])}  # fmt: skip
        (draft / SETTINGS).write_text(json.dumps(settings, indent=2), encoding="utf-8")
        (draft / CARD).write_text(card.to_json(), encoding="utf-8")
        (draft / "card.md").write_text(card.to_markdown(), encoding="utf-8")
    charge.commit()
    scores = None
    if config.test is not None:
        truth, predicted = predicted_labels(config.output, config.test, {})
        title = f"{config.output.name} on {name_of(config.test)}"
        wanted = wanted_groups(
            lambda column: read_columns(config.test, [column])[column], config.group_column, by_class=config.by_class
        )
        scores = Report(
            "Predictions",
            [
                prediction_section("classify", truth, predicted, known=head.labels, title=title),
                *wanted.sections("classify", truth, Answers(config.output.name, [predicted])),
            ],
        )
    return VectorTrainingResult(promised, config.output, config.task, scores, configuration=configuration)


def _card_of(source: object) -> Path | None:
    if is_in_memory(source):
        return None
    beside = Path(f"{source}{CARD_SUFFIX}")
    return beside if beside.is_file() else None


def _check_options(config: TrainClassify) -> None:
    """Refuse options that a linear head of vectors has no use for, before somebody counts on them."""
    fields = type(config).model_fields
    useless = [name for name, field in fields.items() if name not in USED and getattr(config, name) != field.default]
    if useless:
        raise BadParameterError(
            "option-not-for-vectors",
            "training on vectors has no use for {option." + useless[0] + "}: leave it out",
            name=useless[0],
        )
    if config.epsilon == math.inf:
        raise BadParameterError(
            "infinite-epsilon", "private vectors need a finite {option.epsilon[E]}; released ones need none"
        )


def _of_released(config: TrainClassify) -> tuple[VectorHead, Guarantee, Mapping[str, object]]:
    """A head that only reads what was released: its card is that of the vectors."""
    card_path = _card_of(config.vectors)
    if card_path is None:
        raise BadParameterError(
            "vectors-without-card",
            "there is no card beside the vectors, so nothing says that they were released: give the file that 'tacit "
            "embed' wrote with its card, or train with {option.epsilon}, which treats them as private",
        )
    card = read_card(card_path)
    facts = card.facts
    columns = () if facts is None else facts.columns
    # The column is the one that the card speaks of: a column of lists that was kept beside it is not protected.
    table = read_vectors(config.vectors, columns[0] if columns else None, (config.label_column,))
    labels = table.columns[config.label_column]
    promised = released_text(card_path, str(config.vectors), len(table), columns)
    assert facts is not None
    copied = config.label_column in facts.kept_columns
    covered = "copied as they are: not covered" if copied else "randomized: covered by the card"
    if config.labels:
        check_labels(config.labels)
    names = tuple(config.labels) or tuple(sorted(set(labels)))
    sigma = card.guarantee.parameters.get("noise scale", 0.0)
    gaussian = "delta" in card.guarantee.parameters or card.guarantee.delta > 0
    head = released_head(table.matrix, _numbers(labels, names), names, float(cast("float", sigma)) if gaussian else 0.0)
    history = (*promised.history, "linear head trained on the released vectors: post-processing")
    parameters = {**promised.parameters, "labels of training": covered}
    return head, replace(promised, history=history, parameters=parameters), card.made_by


def _numbers(labels: Sequence[str], names: Sequence[str]) -> Any:
    known, present = set(names), set(labels)
    for row, label in enumerate(labels, start=1):
        if label not in known:
            raise BadInputError(
                "label-not-listed",
                "row {row:,} has a label that is not among the {labels:,} given ones: list all labels that exist",
                row=row,
                labels=len(names),
            )
    if len(present) < 2 or len(present) < len(known):
        raise BadInputError(
            "too-few-of-a-label", "a classifier of released vectors needs rows of every label, and of at least two"
        )
    return class_numbers(labels, names)


def _of_private(config: TrainClassify, charge: ReleaseCharge) -> tuple[VectorHead, Guarantee]:
    """A head from noisy sums of private vectors, paid for before they are drawn."""
    table = read_vectors(config.vectors, None, (config.label_column,))
    labels = table.columns[config.label_column]
    if not config.labels:
        raise BadParameterError(
            "labels-not-stated",
            "private vectors need the list of all labels, {option.labels[A,B,C]}: which ones occur is private",
        )
    check_labels(config.labels)
    unknown = next((row for row, label in enumerate(labels, start=1) if label not in config.labels), None)
    if unknown is not None:
        raise BadInputError(
            "label-not-listed",
            "row {row:,} has a label that is not among the {labels:,} given ones: list all labels that exist",
            row=unknown,
            labels=len(config.labels),
        )
    epsilon = float(cast("float", config.epsilon))
    delta = config.chosen_delta if config.chosen_delta is not None else automatic_delta(len(table))
    source = new_source(config.seed)
    promised = Guarantee(
        notion=Notion.APPROXIMATE,
        epsilon=epsilon,
        delta=delta,
        model=Model.CENTRAL,
        unit=Unit.RECORD,
        adjacency=config.adjacency,
        mechanism="class means from noisy sums of vectors",
        parameters={"bound": "l2", "C": 1.0, "labels": f"{len(config.labels):,}, given publicly"},
        not_covered=("how many records there are", "that the vectors have this many numbers"),
        assumptions=(
            "the noise comes from a secret random key of the operating system",
            "whatever made the vectors saw one record at a time",
            "the list of labels was given from public knowledge, not read off the private rows",
        ),
    )
    if not source.secure:
        promised = promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)
    charge.reserve(promised)
    head, sigma = private_head(
        table.matrix, class_numbers(labels, config.labels), config.labels,
        epsilon=epsilon, delta=delta, adjacency=config.adjacency, source=source,
    )  # fmt: skip
    return head, replace(promised, parameters={"noise scale": sigma, **promised.parameters})


# Predictions ----------------------------------------------------------------------------------------------------------


def load_head(folder: Path) -> tuple[VectorHead, dict[str, Any]]:
    """The head of a folder, and its settings."""
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    with np.load(folder / HEAD, allow_pickle=False) as arrays:
        return VectorHead(tuple(settings["labels"]), arrays["weights"], arrays["offsets"]), settings


def vectors_of_rows(settings: Mapping[str, Any], data: object, text_column: str) -> Floats:
    """The vectors of rows: those that stand there, or the ones of their texts, without noise."""
    try:
        return np.asarray(read_vectors(data).matrix, dtype=np.float64)
    except BadInputError as error:
        if error.code not in ("no-vectors", "unknown-format"):
            raise
    if not settings["made_by"]:
        raise BadInputError(
            "vectors-of-unknown-origin",
            "this model was trained on vectors that no card describes, so it cannot read texts: give rows with vectors",
        )
    mechanism = mechanism_again(settings["made_by"], settings.get("digests", {}))
    return mechanism.clean_vectors(read_columns(data, [text_column])[text_column])


def predicted_labels(folder: Path, data: object, columns: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The true labels of rows, and those that the model gives them."""
    head, settings = load_head(folder)
    label = columns.get("label", settings["label_column"])
    truth = read_columns(data, [label])[label]
    return truth, head.predict(vectors_of_rows(settings, data, columns.get("text", settings["text_column"])))


def vector_predictions(folder: Path, data: object, text_column: str | None = None) -> list[str]:
    """The labels that the model of a folder gives to rows."""
    head, settings = load_head(folder)
    return head.predict(vectors_of_rows(settings, data, text_column or settings["text_column"]))


def predict_with_vectors(config: PredictConfig) -> PredictionResult:
    """The predictions of a classifier of vectors, written and scored as its options say."""
    from tacit.jobs.predict import PredictionResult
    from tacit.jobs.training.compared import beside_answers

    head, settings = load_head(config.model)
    named = config.named_columns(("text", "label"))
    predicted = vector_predictions(config.model, config.data, named.get("text"))
    scores = None
    if config.scored:
        label = named.get("label", settings["label_column"])
        truth = read_columns(config.data, [label])[label]
        title = f"{config.model.name} on {name_of(config.data)}"
        wanted = config.wanted(lambda column: read_columns(config.data, [column])[column])
        beside = beside_answers(config, "classify", lambda done: None)
        scores = Report(
            "Predictions",
            [
                prediction_section("classify", truth, predicted, known=head.labels, title=title),
                *wanted.sections("classify", truth, Answers(config.model.name, [predicted]), beside),
            ],
        )
    if config.output is not None:
        everything = read_columns(config.data, [], rest=True)
        write_columns(config.output, {**everything, config.prediction_column: predicted}, force=config.force)
    return PredictionResult("classify", predicted, scores, config.output)
