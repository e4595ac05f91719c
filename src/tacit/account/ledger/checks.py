"""Checks of a release, a data set and a kind of subject before they are written into a ledger."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from tacit.account.ledger.books import OWN_KINDS
from tacit.account.ledger.charges import DATASET, Subject
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Model

LONGEST_NAME: Final = 200


def check_dataset(dataset: str) -> None:
    if not dataset.strip() or len(dataset) > LONGEST_NAME:
        raise BadParameterError(
            "bad-data-set-name",
            "give the data set a name of 1 to {longest_name} characters: releases under the same name add up",
            longest_name=LONGEST_NAME,
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in dataset):
        raise BadParameterError(
            "control-character-in-name",
            "the name of a data set holds a control character: give it a name that can be printed",
        )


def check_release(guarantee: Guarantee, dataset: str, subjects: Sequence[Subject]) -> None:
    check_dataset(dataset)
    for kind in {subject[0] for subject in subjects}:
        check_kind(kind)
    if guarantee.model is Model.LOCAL and not subjects:
        raise BadParameterError(
            "nobody-to-charge", "name the documents or users of the release: without them nobody can be charged"
        )
    if any(subject[0] == DATASET and subject[1] != dataset for subject in subjects):
        raise BadParameterError("several-data-sets", "a release is of one data set: reserve each data set on its own")


def check_kind(kind: str) -> None:
    if kind in OWN_KINDS or not kind.replace("-", "").isalnum() or kind != kind.lower():
        raise BadParameterError(
            "bad-subject-kind", "a kind of subject is one word in small letters, such as user, not '{kind}'", kind=kind
        )
