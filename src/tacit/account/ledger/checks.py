"""What a release, a data set and a kind of subject must be like to be written down."""

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
            f"give the data set a name of 1 to {LONGEST_NAME} characters: releases under the same name add up"
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in dataset):
        raise BadParameterError("the name of a data set holds a control character: give it a name that can be printed")


def check_release(guarantee: Guarantee, dataset: str, subjects: Sequence[Subject]) -> None:
    check_dataset(dataset)
    for kind in {subject[0] for subject in subjects}:
        check_kind(kind)
    if guarantee.model is Model.LOCAL and not subjects:
        raise BadParameterError("name the documents or users of the release: without them nobody can be charged")
    if any(subject[0] == DATASET and subject[1] != dataset for subject in subjects):
        raise BadParameterError("a release is of one data set: reserve each data set on its own")


def check_kind(kind: str) -> None:
    if kind in OWN_KINDS or not kind.replace("-", "").isalnum() or kind != kind.lower():
        raise BadParameterError(f"a kind of subject is one word in small letters, such as user, not '{kind}'")
