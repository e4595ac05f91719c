"""Collective decoding: a corpus of what many local releases of a codebook say together about each label.

made = tacit.decode("private.csv", output="decoded.csv")
made.texts, made.card

The file is one of `tacit rewrite` with the codebook and labels. Its card tells the law of the release, so sums over all
records of a label are estimated without bias and public sentences are drawn by them (`tacit.matching.decoding`).
Nothing is spent: the card of the result carries the promise of the release.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from tacit.card import Card
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Force, LabelColumn, Output, Pools, SampleSeed, SyntheticRowCount
from tacit.jobs.released_rows import ReleasedRows, card_of_rows, write_rows_with_card
from tacit.needs import Ability, needs_of_place
from tacit.places import refuse_existing
from tacit.progress import WorkProgress
from tacit.text.digest import file_digest
from tacit.text.files import cell_string, format_of, open_table

if TYPE_CHECKING:
    from tacit.arrays import Floats32, Ids
    from tacit.documents.codebook import Codebook
    from tacit.jobs.rewrite_config import RewriteConfig
    from tacit.matching.corpus import MatchedCorpus
    from tacit.matching.decoding import CellFeatures, LabelSums
    from tacit.matching.pool import SentencePool

MECHANISM = "collective decoding of"
BLOCK = 1_000


class DecodeConfig(Config):
    """A release, the public sentences, and the corpus."""

    job: ClassVar[str] = "decode"

    release: Annotated[
        Path,
        Field(description="A file that 'tacit rewrite' released with the mechanism 'codebook' and labels."),
        Option(Group.DATA, positional=True, metavar="RELEASE"),
    ]
    output: Annotated[Output[Path], Field(description="The corpus; its card stands beside it.")] = Path("decoded.csv")
    release_card: Annotated[
        Path | None,
        Field(description="The card of the release; by default RELEASE.card.json."),
        Option(Group.DATA, metavar="FILE"),
    ] = None
    label_column: Annotated[
        LabelColumn[str | None],
        Field(description="The column of labels; by default the one that was released with noise, or the only copied "
              "one."),
    ] = None  # fmt: skip
    codebook_folder: Annotated[
        Path | None,
        Field(description="The codebook of the release, if it is not one that comes with Tacit."),
        Option(Group.DATA, metavar="DIR"),
    ] = None
    pools: Pools = ("general",)
    rows: Annotated[
        SyntheticRowCount[int | None],
        Field(description="Rows to draw; as many as were released by default, and at least 30,000."),
    ] = None
    sample_seed: SampleSeed = None
    force: Force = False

    def needs(self) -> list[Ability]:
        return [*super().needs(), *needs_of_place(str(self.output))]


@dataclass(frozen=True)
class DecodedRows(ReleasedRows):
    """A corpus of public sentences with labels, column by column, with its card; an attribution stands beside it too.

    shares       of the labels, as estimated
    deviations   of the noise in them
    """

    shares: Mapping[str, float]
    deviations: Mapping[str, float]


def run(config: DecodeConfig, progress: WorkProgress | None = None) -> DecodedRows:
    """The corpus in a file, with its card and attribution."""
    from tacit.matching.decoding import CellFeatures, label_sums
    from tacit.matching.decoding_corpus import decoded_corpus
    from tacit.matching.label_names import spoken_name
    from tacit.matching.pool import load_pool

    format_of(str(config.output))
    refuse_existing(config.output, force=config.force)
    law = _ReleaseLaw.of(config)
    pools = [load_pool(name) for name in config.pools]
    cells, labels, names = law.read(config.release)
    features = CellFeatures.of(law.mechanism.partition.centers)
    of_names = text_features(law.mechanism, features, [spoken_name(name) for name in names])
    sums = label_sums(cells, labels, names, law.channel(len(names)), features, of_names)
    of_pool = pool_features(law.mechanism, features, pools, progress)
    seed = secrets.randbelow(1 << 31) if config.sample_seed is None else config.sample_seed
    corpus = decoded_corpus(sums, pools, of_pool, law.promise(pools), rows=config.rows, seed=seed)
    return _written(config, law, corpus, sums)


def decode(release: str | Path, *, progress: WorkProgress | None = None, **options: Any) -> DecodedRows:
    """A corpus of what many local releases say together; options as in `DecodeConfig`."""
    return run(DecodeConfig(release=Path(release), **options), progress)


def pool_features(
    mechanism: Codebook, features: CellFeatures, pools: Sequence[SentencePool], progress: WorkProgress | None = None
) -> Floats32:
    """H of public sentences: the mean features of the cells that are near them under the law of a release."""
    import numpy as np

    sentences = [sentence for pool in pools for sentence in pool.sentences]
    blocks = []
    for start in range(0, len(sentences), BLOCK):
        blocks.append(text_features(mechanism, features, sentences[start : start + BLOCK]))
        if progress is not None:
            progress("reading the pool", min(start + BLOCK, len(sentences)), len(sentences))
    return np.concatenate(blocks)


def text_features(mechanism: Codebook, features: CellFeatures, texts: Sequence[str]) -> Floats32:
    """H of public texts: the mean features of the cells near them."""
    products = mechanism.cell_products(mechanism.sentence_encoder.encode(texts))
    return features.of_texts(products, mechanism.choice.s)


@dataclass(frozen=True)
class _ReleaseLaw:
    """The law of a release as its card tells it: how texts and labels were drawn, and the promise."""

    card: Card
    config: RewriteConfig
    mechanism: Codebook
    label_column: str

    @classmethod
    def of(cls, config: DecodeConfig) -> _ReleaseLaw:
        from tacit.documents.codebook import Codebook
        from tacit.jobs.rewrite_config import RewriteConfig

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
        import numpy as np

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

    def channel(self, labels: int) -> Any:
        """How the released labels tell about the true ones."""
        from tacit.matching.decoding import LabelChannel
        from tacit.noise.response import response_shares

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


def _written(config: DecodeConfig, law: _ReleaseLaw, corpus: MatchedCorpus, sums: LabelSums) -> DecodedRows:
    assert law.card.facts is not None
    text = law.card.facts.columns[0]
    columns = {text: list(corpus.texts), law.label_column: list(corpus.labels)}
    card = card_of_rows(config, corpus.guarantee, corpus.texts, command="tacit decode", shuffled=law.card.shuffled)
    write_rows_with_card(config.output, columns, card, attribution=corpus.attribution)
    total = max(1.0, float(sums.counts.sum()))
    return DecodedRows(
        columns,
        text,
        card,
        config.output,
        dict(zip(sums.labels, (sums.counts / total).tolist(), strict=True)),
        dict(zip(sums.labels, (sums.count_variance**0.5 / total).tolist(), strict=True)),
    )
