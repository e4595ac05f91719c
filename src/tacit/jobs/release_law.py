"""The law of a release of the codebook as its card tells it: how texts and labels were drawn, and what was promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Ids
from tacit.card import Card
from tacit.documents.codebook import Codebook
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.jobs.rewrite_config import RewriteConfig
from tacit.matching.decoding import LabelChannel
from tacit.matching.pool import SentencePool
from tacit.noise.response import response_shares
from tacit.text.digest import file_digest
from tacit.text.files import cell_string, open_table

if TYPE_CHECKING:
    from tacit.jobs.decode import DecodeConfig

MECHANISM = "collective decoding of"


@dataclass(frozen=True)
class ReleaseLaw:
    """The law of a release as its card tells it: how texts and labels were drawn, and the promise."""

    card: Card
    config: RewriteConfig
    mechanism: Codebook
    label_column: str

    @classmethod
    def of(cls, config: DecodeConfig) -> ReleaseLaw:
        path = config.release_card or Path(f"{config.release}.card.json")
        try:
            card = Card.of_file(path)
        except (OSError, UnicodeDecodeError):
            raise BadInputError(
                "release-without-card",
                "there is no card '{path}': decoding needs the card of the release, which says how it was drawn; name "
                "it with {option.release_card[FILE]}",
                path=path,
            ) from None
        made_by = dict(card.made_by)
        if card.facts is None or made_by.get("job") != "rewrite" or made_by.get("mechanism") != "codebook":
            raise BadInputError(
                "not-a-codebook-release",
                "the card '{path}' is not of a file that 'tacit rewrite' released with the mechanism 'codebook'",
                path=path,
            )
        if card.facts.digest and config.release.is_file() and card.facts.digest != file_digest(config.release):
            raise BadInputError(
                "card-of-another-file",
                "the card '{path}' belongs to another file, or '{release}' was changed after it was released: the law "
                "of its rows is not known",
                path=path,
                release=config.release,
            )
        given = made_by.pop("options", None)
        options = dict(given) if isinstance(given, Mapping) else {}
        if config.codebook_folder is not None:
            options["codebook"] = str(config.codebook_folder)
        rewriting = RewriteConfig.from_mapping({**made_by, "options": options, "input": "released"})
        mechanism = rewriting.build_mechanism()
        assert isinstance(mechanism, Codebook)
        _check_codebook(mechanism, card)
        return cls(card, rewriting, mechanism, _label_column(config, card))

    def read(self, path: Path) -> tuple[Ids, Ids, tuple[str, ...]]:
        """The released cells and labels as numbers, and the names of the labels."""
        assert self.card.facts is not None
        level, sentences = self.mechanism.partition, self.mechanism.public.sentences
        cell_of = {sentences[place]: cell for place, cell in enumerate(level.cells().tolist())}
        cells: list[int] = []
        values: list[str] = []
        with open_table(str(path), None, (self.card.facts.columns[0], self.label_column)) as table:
            for row, (text, label) in table.rows():
                cell = cell_of.get(cell_string(text))
                if cell is None:
                    raise BadInputError(
                        "not-a-released-sentence",
                        "row {row:,} holds no sentence of the codebook: the file was changed, or made with another one",
                        row=row,
                    )
                cells.append(cell)
                values.append(cell_string(label))
        names = tuple(self.config.labels) or tuple(sorted(set(values)))
        places = {name: place for place, name in enumerate(names)}
        if not set(values) <= set(places):
            raise BadInputError(
                "label-not-of-the-release", "'{column}' holds labels that are not on the card", column=self.label_column
            )
        numbers = [places[value] for value in values]
        return np.array(cells, dtype=np.int64), np.array(numbers, dtype=np.int64), names

    def channel(self, labels: int) -> LabelChannel:
        """How the released labels tell about the true ones."""
        law = self.mechanism.two_weights()
        if law is None:
            raise BadInputError(
                "several-sentences", "texts were released as several sentences each, which cannot be decoded together"
            )
        rule = self.config.label_rule()
        if rule is None:
            return LabelChannel.copied(labels, law)
        if rule.joint:
            return LabelChannel.joint(labels, law)
        truth, lie = response_shares(rule.own_epsilon, labels)
        total = truth + (labels - 1) * lie
        return LabelChannel.response(labels, law, truth / total, lie / total)

    def promise(self, pools: Sequence[SentencePool]) -> Guarantee:
        """The promise of the release, for what is made of it."""
        released = self.card.guarantee
        origins = tuple(line for pool in pools for line in pool.provenance())
        return replace(
            released, mechanism=f"{MECHANISM} {released.mechanism}", provenance=(*released.provenance, *origins)
        )


def _check_codebook(mechanism: Codebook, card: Card) -> None:
    """The codebook must be the one of the release, and each text one sentence of it."""
    parameters = card.guarantee.parameters
    known = parameters.get("codebook digest", mechanism.public.digest)
    numbers = (parameters.get("k"), parameters.get("s"))
    if known != mechanism.public.digest or numbers != (mechanism.choice.k, mechanism.choice.s):
        raise BadInputError(
            "another-codebook",
            "the release was made with another codebook than '{codebook}': give the right one with "
            "{option.codebook_folder[DIR]}",
            codebook=mechanism.codebook,
        )
    if mechanism.decode == "language-model":
        raise BadInputError(
            "written-releases", "texts that a language model wrote tell no cell, and cannot be decoded together"
        )


def _label_column(config: DecodeConfig, card: Card) -> str:
    assert card.facts is not None
    if len(card.facts.columns) != 1:
        raise BadInputError("several-texts", "the release has several columns of texts: decode files with one")
    known = card.facts.randomized_columns or card.facts.kept_columns
    column = config.label_column or (known[0] if len(known) == 1 else None)
    if column is None or column not in (*card.facts.randomized_columns, *card.facts.kept_columns):
        raise BadInputError(
            "no-label-column",
            "say which column of the release holds the labels with {option.label_column[COLUMN]}: {columns}",
            columns=", ".join((*card.facts.randomized_columns, *card.facts.kept_columns)) or "it has none",
        )
    return column
