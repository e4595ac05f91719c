"""Words and a tokenizer learned from private text, with their privacy card.

vocabulary = tacit.jobs.vocabulary.build("reviews.csv", epsilon=1, output="vocabulary")
print(vocabulary.card)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.account.release_charge import ReleaseCharge
from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Guarantee
from tacit.jobs.charging import charging, check_name_for_ledger
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    AutoDelta,
    Cased,
    Column,
    Data,
    DatasetOfInput,
    Format,
    Kind,
    Ledger,
    MostWords,
    Noise,
    Output,
    PromisedUsers,
    PublicName,
    PublicWords,
    ReplaceOne,
    TestSeed,
    TrainingEpsilon,
    VocabularySize,
)
from tacit.jobs.sources import Source, needs_of_source
from tacit.needs import TOKENIZERS, Ability, needs_of_ledger
from tacit.places import refuse_taken_folder
from tacit.text.files import read_columns
from tacit.text.files.memory import is_in_memory
from tacit.training.vocabulary import (
    Contribution,
    WordHistogram,
    build_tokenizer,
    private_histogram,
    save_vocabulary,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class VocabularyConfig(Config):
    """Private texts, what pays for their words, and the tokenizer that is made from them."""

    job: ClassVar[str] = "vocabulary"

    data: Annotated[Data, Field(description="The private texts: csv, tsv, jsonl, parquet, txt (also .gz).")]
    output: Annotated[Output[Path], Field(description="The folder to write; it must not exist yet.")]
    epsilon: Annotated[TrainingEpsilon[float], Field(description="The privacy budget of one record or user.")]
    column: Column[str] = "text"
    delta: AutoDelta = "auto"
    kind: Annotated[
        Kind[Literal["wordpiece", "bpe", "unigram", "words"]],
        Field(description="Tokenizer: wordpiece (BERT), bpe (GPT-2), unigram; 'words' makes none."),
    ] = "wordpiece"
    vocabulary_size: Annotated[VocabularySize, Varied(old_names=("size",))] = 8000
    user_column: PromisedUsers = None
    most_words: MostWords[int] = 100
    weighting: Annotated[
        Literal["one", "shared"] | None,
        Field(
            description="What a word of a record counts: 'one', or 'shared' (less the more words it has; default, but "
            "for laplace noise)."
        ),
        Option(Group.PRIVACY),
    ] = None
    noise: Annotated[
        Noise[Literal["gaussian", "laplace"]],
        Field(description="Noise on the counts; laplace goes with weighting 'one'."),
    ] = "gaussian"
    public_words: Annotated[
        PublicWords[Source],
        Field(description="A public word list, one per line: only these are counted, and all of them are shown."),
    ] = None
    public: Annotated[PublicName, Field(description="Declare the word list public, by its name.")] = None
    cased: Cased = False
    replace_one: ReplaceOne = False
    format: Format = None
    seed: TestSeed = None
    ledger: Ledger = None
    dataset: DatasetOfInput = None

    def needs(self) -> list[Ability]:
        tokenizers = [] if self.kind == "words" else [TOKENIZERS]
        return [*tokenizers, *needs_of_source(self.data, self.format), *needs_of_ledger(self.ledger)]

    @model_validator(mode="after")
    def _the_ledger_has_a_name_for_the_data(self) -> Self:
        check_name_for_ledger(self)
        return self

    @model_validator(mode="after")
    def _word_list_is_declared_public(self) -> Self:
        if self.public_words is not None and not (self.public or "").strip():
            raise BadParameterError(
                "word-list-not-public",
                "all words of the list are shown, so it must be public: if it is, say so with {option.public[NAME]}; "
                "without a list the words are found privately",
            )
        return self

    @property
    def contribution(self) -> Contribution:
        """The largest contribution of one record or user."""
        return Contribution(self.most_words, self.weighting or ("one" if self.noise == "laplace" else "shared"))


@dataclass(frozen=True)
class PrivateVocabulary:
    """Words with noisy counts, the tokenizer made from them (None for words alone), and the folder of both."""

    histogram: WordHistogram
    tokenizer: PreTrainedTokenizerFast | None
    folder: Path
    configuration: Mapping[str, object] = field(default_factory=dict)

    @property
    def guarantee(self) -> Guarantee:
        return self.histogram.guarantee

    @property
    def card(self) -> Card:
        return Card(self.guarantee, configuration=self.configuration)

    def __str__(self) -> str:
        pieces = "" if self.tokenizer is None else f", {len(self.tokenizer):,} pieces"
        return f"{len(self.histogram):,} words{pieces} in {self.folder}: {self.guarantee}"


def run(config: VocabularyConfig) -> PrivateVocabulary:
    """The vocabulary of private texts, saved with its card. Every call spends its budget anew."""
    refuse_taken_folder(config.output)
    with charging(config, "tacit vocabulary build") as charge:
        return _released(config, charge)


def _released(config: VocabularyConfig, charge: ReleaseCharge) -> PrivateVocabulary:
    words = None if config.public_words is None else _words(config.public_words)
    names = [config.column] if config.user_column is None else [config.column, config.user_column]
    columns = read_columns(config.data, names, format=config.format)
    histogram = private_histogram(
        columns[config.column],
        epsilon=config.epsilon,
        delta=None if config.delta == "auto" else config.delta,
        users=None if config.user_column is None else columns[config.user_column],
        contribution=config.contribution,
        kind=config.noise,
        public_words=words,
        public_name=(config.public or "").strip(),
        adjacency=Adjacency.REPLACE_ONE if config.replace_one else Adjacency.ADD_REMOVE,
        lowercase=not config.cased,
        seed=config.seed,
        before_noise=charge.reserve,
    )
    tokenizer = (
        None if config.kind == "words" else build_tokenizer(histogram, kind=config.kind, size=config.vocabulary_size)
    )
    save_vocabulary(config.output, histogram, tokenizer, config.identity())
    charge.commit()
    return PrivateVocabulary(histogram, tokenizer, config.output, config.identity())


def build(data: object, *, output: str | Path, epsilon: float, **options: Any) -> PrivateVocabulary:
    """The words of private texts and a tokenizer; a file or data in memory, options as in `VocabularyConfig`."""
    return run(VocabularyConfig(data=data, output=Path(output), epsilon=epsilon, **options))


def _words(source: Any) -> list[str]:
    """A public list of words: of a file with one per line, or in memory."""
    if is_in_memory(source):
        return [str(word) for word in source]
    try:
        return Path(source).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-word-list",
            "'{path}' cannot be read as UTF-8 text, one word per line: check the name",
            path=source,
        ) from error
