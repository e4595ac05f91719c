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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Force, LabelColumn, Output, Pools, SampleSeed, SyntheticRowCount
from tacit.jobs.released_rows import ReleasedRows, card_of_rows, write_rows_with_card
from tacit.needs import Ability, needs_of_place
from tacit.places import refuse_existing
from tacit.progress import WorkProgress
from tacit.text.files import format_of

if TYPE_CHECKING:
    from tacit.arrays import Floats32
    from tacit.documents.codebook import Codebook
    from tacit.jobs.release_law import ReleaseLaw
    from tacit.matching.corpus import MatchedCorpus
    from tacit.matching.decoding import CellFeatures, LabelSums
    from tacit.matching.pool import SentencePool

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
    from tacit.jobs.release_law import ReleaseLaw
    from tacit.matching.decoding import CellFeatures, label_sums
    from tacit.matching.decoding_corpus import decoded_corpus
    from tacit.matching.label_names import spoken_name
    from tacit.matching.pool import load_pool

    format_of(str(config.output))
    refuse_existing(config.output, force=config.force)
    law = ReleaseLaw.of(config)
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


def _written(config: DecodeConfig, law: ReleaseLaw, corpus: MatchedCorpus, sums: LabelSums) -> DecodedRows:
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
