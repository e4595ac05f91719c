"""The options that more than one configuration has, each declared once.

An option whose values differ in type is generic: `Epsilon[float]`, `Epsilon[float | None]`. Where a job has to say more
about it, its sentence is replaced, `Annotated[Epsilon[float], Field(description="…")]`, and where a command shows it in
another way, `Varied` says how. A field of the same name always begins with the same declaration; a test counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from tacit.devices import check_device
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.sources import Source
from tacit.jobs.values import LabelNames, StrategyName, named_values, number_or_auto, split_at_commas
from tacit.precision import TrainingPrecision

T = TypeVar("T")

# Files and columns ----------------------------------------------------------------------------------------------------

Data = Annotated[
    Source,
    Field(description="The private records: csv, tsv, jsonl, parquet (also .gz)."),
    Option(Group.DATA, positional=True, metavar="DATA", private=True),
]
Input = Annotated[
    Source,
    Field(description="The file to read, or - for standard input."),
    Option(Group.DATA, positional=True, metavar="INPUT", private=True),
]
Original = Annotated[
    Source,
    Field(description="The private file (txt, csv, tsv, jsonl …)."),
    Option(Group.DATA, positional=True, private=True),
]
Private = Annotated[
    T, Field(description="The file that was made from it."), Option(Group.DATA, positional=True, private=True)
]
PublicText = Annotated[
    Source,
    Field(description="Public text, one per line, UTF-8."),
    Option(Group.DATA, positional=True, metavar="TEXT"),
]
Output = Annotated[
    T, Field(description="The folder for the model and its privacy card."), Option(Group.DATA, private=True)
]
Folder = Annotated[
    Path, Field(description="The folder to read."), Option(Group.DATA, positional=True, metavar="FOLDER", private=True)
]
File = Annotated[Path, Field(description="The file to run."), Option(Group.DATA, positional=True, private=True)]
Name = Annotated[T, Field(description="The name of what is meant."), Option(Group.DATA, positional=True)]
Cased = Annotated[bool, Field(description="Keep capitals; by default all words are lower case."), Option(Group.MODEL)]
Kind = Annotated[T, Field(description="Which kind is made."), Option(Group.MODEL)]
TestRows = Annotated[
    Source,
    Field(description="Rows to score the finished model on. They must not be private."),
    Option(Group.DATA, private=True),
]
Canaries = Annotated[
    Path | None,
    Field(description="The coins of canaries in the training data, made by 'tacit audit canaries'."),
    Option(Group.DATA, private=True),
]
Columns = Annotated[
    tuple[str, ...],
    Field(description="A column of texts; may be repeated. By default the only column, or 'text'."),
    Option(Group.DATA),
]
Column = Annotated[T, Field(description="The column of texts."), Option(Group.DATA)]
UsualColumn = Annotated[
    Column[str | None], Field(description="The column of texts; by default the only one, or 'text'.")
]
TextColumn = Annotated[str, Field(description="The column of the text."), Option(Group.DATA)]
LabelColumn = Annotated[T, Field(description="The column of labels."), Option(Group.DATA)]
LabelColumns = Annotated[
    tuple[str, ...],
    BeforeValidator(split_at_commas),
    Field(description="A column of labels; may be repeated."),
    Option(Group.DATA),
]
AttributeColumns = Annotated[
    tuple[str, ...],
    Field(description="A column of ORIGINAL to infer from what was released; may be repeated."),
    Option(Group.DATA),
]
PrivateColumn = Annotated[
    str | None, Field(description="The column in PRIVATE, if it is called otherwise."), Option(Group.DATA)
]
QuestionColumn = Annotated[T, Field(description="The column of the question."), Option(Group.DATA)]
UserColumn = Annotated[T, Field(description="The column that says whose row it is."), Option(Group.DATA)]
PromisedUsers = Annotated[
    UserColumn[str | None],
    Field(description="The column that says who wrote a row: the promise is then made to users."),
    Varied(group=Group.PRIVACY),
]
Labels = Annotated[
    T,
    Field(description="All labels that exist, from public knowledge: never read off the data."),
    Option(Group.DATA, comma_separated=True),
]
CountedLabels = Annotated[
    Labels[tuple[str, ...]],
    LabelNames,
    Field(description="All labels, from public knowledge; rows with any other are left out."),
    Varied(metavar="A,B,C"),
]
Topics = Annotated[T, Field(ge=1, description="How many topics."), Option(Group.DATA)]
DeclareLabelsPublic = Annotated[
    bool,
    Field(description="The labels that occur in DATA are declared public; the card says so."),
    Option(Group.PRIVACY),
]
Format = Annotated[
    str | None,
    Field(description="Format of the input (txt, csv, csv-semicolon, tsv, tsv-raw, jsonl, parquet, or with .gz), if "
          "its name does not tell."),
    Option(Group.DATA),
]  # fmt: skip
PrivateFormat = Annotated[str | None, Field(description="Format of PRIVATE and its test files."), Option(Group.DATA)]
License = Annotated[str, Field(description="License of the text, for the privacy card."), Option(Group.DATA)]
Dataset = Annotated[
    T,
    Field(description="Name of the data set in the ledger: releases of one name add up."),
    Option(Group.BUDGET, private=True),
]
DatasetOfInput = Annotated[
    Dataset[str | None],
    Field(description="Name of the data set in the ledger: releases of one name add up. By default the name of the "
          "input."),
]  # fmt: skip
Ledger = Annotated[
    str | None,
    Field(description="Write down what is spent in this ledger, and keep its limits (see 'tacit ledger')."),
    Option(Group.BUDGET, metavar="FILE|URL", private=True),
]

# Privacy --------------------------------------------------------------------------------------------------------------

Epsilon = Annotated[
    T, Field(description="The privacy budget of one record; smaller is more private."), Option(Group.PRIVACY)
]
TrainingEpsilon = Annotated[
    Epsilon[T],
    Field(gt=0, description="The privacy budget of one record; 'inf' trains without privacy, for comparison."),
]
MechanismEpsilon = Annotated[
    Epsilon[float | None], Field(description="The budget of the mechanism; smaller is more private.")
]
Budget = Annotated[float, Field(gt=0)]
Epsilons = Annotated[
    tuple[Budget, ...],
    Field(description="The budget to train for; several make one model for all."),
    Option(Group.TRAINING),
]
Delta = Annotated[
    T,
    Field(description="What every probability may grow by; 'auto': well below 1 / records."),
    Option(Group.PRIVACY),
]
AutoDelta = Annotated[Delta[float | Literal["auto"]], BeforeValidator(number_or_auto)]
ReplaceOne = Annotated[
    bool,
    Field(description="Neighbors differ by replacing a record (twice the sensitivity)."),
    Option(Group.PRIVACY),
]
Trials = Annotated[
    int,
    Field(ge=1, description="How many runs on these records you compare before keeping one: their budgets add up."),
    Option(Group.PRIVACY),
]
Released = Annotated[
    Path | None,
    Field(description="The texts were released by 'tacit rewrite' with this card: no noise, and its promise."),
    Option(Group.PRIVACY),
]
PublicName = Annotated[
    str | None,
    Field(description="Declare the text public, by the name it is known by."),
    Option(Group.PRIVACY, metavar="NAME"),
]
PublicWords = Annotated[
    T,
    Field(description="A public list of words, one per line."),
    Option(Group.PRIVACY, metavar="FILE"),
]
RefuseNominal = Annotated[
    T,
    Field(description="Refuse releases whose formal bound no longer protects."),
    Option(Group.PRIVACY),
]
Randomize = Annotated[
    str | None,
    Field(description="A column of labels to release with noise; needs the list of labels and a label epsilon."),
    Option(Group.PRIVACY, metavar="COLUMN"),
]
UserMode = Annotated[
    Literal["divide", "concatenate"],
    Field(description="'divide' the budget over a user's rows, or 'concatenate' them into one text (rows sorted by "
          "user)."),
    Option(Group.PRIVACY),
]  # fmt: skip
DocumentsPerUser = Annotated[
    int,
    Field(ge=1, description="With 'divide': how many rows of a user are used; further ones are left out."),
    Option(Group.PRIVACY),
]
MostWords = Annotated[
    T,
    Field(ge=1, description="Different words of a record, or user, that count; others are left out."),
    Option(Group.PRIVACY),
]
Noise = Annotated[T, Field(description="Which noise is added."), Option(Group.PRIVACY)]
Bands = Annotated[T, Field(ge=1, description="Bands of banded noise."), Option(Group.PRIVACY)]
CountShare = Annotated[
    float,
    Field(gt=0, lt=1, description="Part of epsilon that pays for the label counts."),
    Option(Group.PRIVACY),
]
Seed = Annotated[T, Field(description="Repeat a run: the same seed draws the same."), Option(Group.PRIVACY)]
TestSeed = Annotated[Seed[int | None], Field(description="Test seed: repeatable, and without any guarantee.")]
AuditSeed = Annotated[
    Seed[int],
    Field(description="Seed of the (public) randomness: samples, folds and orders."),
    Varied(group=Group.MEASURES),
]
PublicSeed = Annotated[Seed[int], Field(description="Seed of the (public) randomness."), Varied(group=Group.MODEL)]
StartSeed = Annotated[
    int | None,
    Field(description="Seed of the weights that are new, which are public; by default the test seed, or 0."),
    Option(Group.MODEL),
]

# Mechanisms -----------------------------------------------------------------------------------------------------------

MechanismName = Annotated[T, Field(description="A mechanism; see 'tacit mechanisms'."), Option(Group.PRIVACY)]
MechanismOptions = Annotated[
    dict[str, object],
    BeforeValidator(named_values),
    Field(description="Another option of the mechanism; may be repeated."),
    Option(Group.PRIVACY, metavar="NAME=VALUE", old_names=("mechanism_options",)),
]
Vectors = Annotated[str | None, Field(description="Public word vectors: a file, or a name."), Option(Group.PRIVACY)]

# Models ---------------------------------------------------------------------------------------------------------------

Model = Annotated[
    T, Field(description="minilm, bilstm (from scratch), a folder, or a name on the hub."), Option(Group.MODEL)
]
Start = Annotated[T, Field(description="The model to begin with."), Option(Group.MODEL)]
Task = Annotated[T, Field(description="What the model is for."), Option(Group.MODEL)]
Strategy = Annotated[
    T,
    StrategyName,
    Field(
        description="What is trained: bias (default for one label or number), last-2 (any number; default for tags), "
        "lora (default otherwise), ia3, adapter, head, all-layers, frozen-lstm, no-embeddings, full (default from "
        "scratch)."
    ),
    Option(Group.MODEL),
]
Rank = Annotated[int, Field(ge=1, description="Rank of the lora matrices; width of adapters."), Option(Group.MODEL)]
Tokenizer = Annotated[
    str | None,
    Field(description="Another tokenizer: a folder ('tacit vocabulary' makes private ones)."),
    Option(Group.MODEL),
]
VocabularySize = Annotated[int, Field(description="Most pieces of the tokenizer."), Option(Group.MODEL)]
Length = Annotated[int, Field(description="Word pieces of a record that count."), Option(Group.MODEL)]
Encoder = Annotated[
    str,
    Field(description="Sentence encoder: 'static', 'minilm', one of a plug-in, a folder, or a hub name."),
    Option(Group.MODEL),
]

LanguageModel = Annotated[
    T,
    Field(description="Public language model of the perplexity: 'smollm2', a folder, or a hub name."),
    Option(Group.MODEL),
]
USUAL_POOLS = ("general", "encyclopedia", "requests")
Pools = Annotated[
    tuple[str, ...],
    Field(
        description="Public sentences: a name of 'tacit pool list', or a file of 'tacit pool build'; may be repeated."
    ),
    Option(Group.WRITING),
]

# Training -------------------------------------------------------------------------------------------------------------

Epochs = Annotated[T, Field(description="Passes over the data, on average."), Option(Group.TRAINING)]
SomeEpochs = Annotated[Epochs[float], Field(gt=0, allow_inf_nan=False)]
Steps = Annotated[T, Field(description="Number of steps."), Option(Group.TRAINING)]
Batch = Annotated[
    int,
    Field(ge=1, description="Records per step, on average; large batches need less noise."),
    Option(Group.TRAINING),
]
LearningRate = Annotated[T, Field(gt=0, description="By default 5e-4 to 5e-3, by strategy."), Option(Group.TRAINING)]
Clipping = Annotated[
    Literal["flat", "per-layer", "quantile", "automatic", "damped"],
    Field(description="How gradients are shortened."),
    Option(Group.TRAINING),
]
Bound = Annotated[float, Field(gt=0, description="Longest gradient of one record."), Option(Group.TRAINING)]
GradientEngine = Annotated[
    Literal["auto", "taps", "vmap", "loop", "opacus"],
    Field(description="How the gradients of single records are computed."),
    Option(Group.TRAINING, old_names=("engine",)),
]
Optimizer = Annotated[T, Field(description="How steps follow from gradients."), Option(Group.TRAINING)]
AnyOptimizer = Optimizer[Literal["adamw", "adam", "sgd"]]
Schedule = Annotated[
    Literal["linear", "cosine", "constant"],
    Field(description="Learning rate over time."),
    Option(Group.TRAINING),
]

# Measures -------------------------------------------------------------------------------------------------------------

Confidence = Annotated[float, Field(description="Confidence of intervals and verdicts."), Option(Group.MEASURES)]
Sample = Annotated[
    int,
    Field(description="At most this many texts for the measures that are slow."),
    Option(Group.MEASURES),
]

# Running --------------------------------------------------------------------------------------------------------------

Engine = Annotated[
    Literal["local", "ray"],
    Field(description="'local' (this machine), or 'ray' (a cluster; reads folders of files and fsspec paths such as "
          "s3://)."),
    Option(Group.RUN),
]  # fmt: skip
Address = Annotated[
    str | None,
    Field(description="With the engine 'ray': a running cluster ('auto', or HOST:PORT); by default one is started."),
    Option(Group.RUN),
]
Workers = Annotated[int, Field(ge=1, description="Processes to use."), Option(Group.RUN)]
Physical = Annotated[
    T, Field(description="Records worked on at a time; no influence on the result."), Option(Group.RUN)
]
Device = Annotated[
    str,
    AfterValidator(check_device),
    Field(
        description="Where the model computes: cpu, cuda, cuda:N or mps; 'auto' takes a graphics card if there is one. "
        "It has no influence on the promise."
    ),
    Option(Group.RUN, metavar="DEVICE"),
]
LayerPrecision = Annotated[
    TrainingPrecision,
    Field(
        description="bf16 computes all layers with 16 bits, forward and backward (weights, norms, clipped sums and "
        "noise keep 32); fast only those below the lowest trained one, where the processor can."
    ),
    Option(Group.TRAINING),
]
ComputeAgain = Annotated[
    bool,
    Field(description="Compute layers again on the way back instead of keeping them: less memory, more time."),
    Option(Group.TRAINING),
]
Tensorboard = Annotated[bool, Field(description="Also log for TensorBoard (in the private folder)."), Option(Group.RUN)]
Resume = Annotated[bool, Field(description="Go on with an unfinished run in the output folder."), Option(Group.RUN)]
Force = Annotated[bool, Field(description="Replace files that exist."), Option(Group.RUN)]
DryRun = Annotated[bool, Field(description="Say what would be done, and do nothing."), Option(Group.RUN)]
Quiet = Annotated[bool, Field(description="No progress bar and no summary."), Option(Group.RUN)]
AsJson = Annotated[bool, Field(description="Print one JSON object instead of tables."), Option(Group.RUN, name="json")]
SynthesisWay = Annotated[
    T,
    Field(description="How rows are made: 'matching' draws public sentences by noisy sums of the private rows, "
          "'training' trains a language model that writes, 'prompting' lets a public one read them and draws its "
          "words."),
    Option(Group.WRITING, metavar="matching|training|prompting"),
]  # fmt: skip
SyntheticRowCount = Annotated[
    T, Field(ge=1, description="Rows to write."), Option(Group.WRITING, old_names=("number",))
]
Temperature = Annotated[T, Field(description="Below 1: safer texts."), Option(Group.WRITING)]
Shortest = Annotated[int, Field(description="Fewest words of a text."), Option(Group.WRITING)]
Sentences = Annotated[T, Field(description="How many sentences."), Option(Group.WRITING)]
FromSketch = Annotated[
    Path | None,
    Field(description="A sketch that exists."),
    Option(Group.DATA, name="from", metavar="SKETCH"),
]
SketchFile = Annotated[T, Option(Group.DATA, positional=True, metavar="SKETCH")]
SampleSeed = Annotated[
    int | None,
    Field(description="Repeat a writing; otherwise another one each time. It is public."),
    Option(Group.WRITING),
]
