"""`sanitized`: train a masked language model further on public text, as it is or as a mechanism rewrites it.

    plain   mask words, guess them from the text around them (Devlin et al. 2019)
    aware   mask words of *rewritten* text, guess the original ones (Yue et al. 2021, section 4.4): the model meets the
            noise of the mechanism before it is fine-tuned on released texts

The text must be declared public, so its noise may be repeatable. A comparison is fair when both get as many steps:
more training must not be mistaken for the right training. `network` is "minilm", a hub name or a folder; "small" is a
BERT of two layers from scratch over `pieces` word pieces of the same public text. With the input `model` the training
goes on from another step of this kind.

Scores: the mean loss over the masked pieces in the last tenth of the steps, and the share of the public words that the
mechanism left as they were. Each step reads other lines: the interval of a loss is over steps.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from tacit.atomic import draft_folder
from tacit.auditing import binomial
from tacit.catalog import find
from tacit.errors import BadInputError, require
from tacit.evaluation import scores
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_part, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import RUN_FOLDER, Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.rewrite import Rewrite
from tacit.experiments.steps.rewrite import check as check_mechanism
from tacit.experiments.steps.rewrite import meaning as meaning_of_rewriting
from tacit.experiments.training import check_network
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.jobs.sanitized import SanitizedConfig, examples, words_kept
from tacit.jobs.sanitized import run as pretrain
from tacit.lineage import lineage_of
from tacit.training.vocabulary import Contribution, WordHistogram, build_tokenizer
from tacit.training.vocabulary.histogram import count_words, units_of

if TYPE_CHECKING:
    from tacit.training.tasks import Task

SMALL = "small"
WIDTH, LAYERS, HEADS = 128, 2, 4
MODEL = "model"
FREQUENT_WORDS = 20_000


class Sanitized(Parameters):
    """public: the name of the public text, as cards will tell it; mechanism, epsilon, options: of "aware" only; steps:
    0 takes the network as it is; pieces, vectors: word pieces of "small", and public vectors that its embeddings of
    whole words start from."""

    masking: Literal["plain", "aware"]
    public: str
    network: str = SMALL
    mechanism: str | None = None
    epsilon: float | None = Field(default=None, gt=0)
    options: dict[str, str | int | float | bool] = Field(default={})
    steps: int = Field(default=150, ge=0)
    batch: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    length: int = Field(default=32, ge=4)
    pieces: int = Field(default=4000, ge=100)
    vectors: str | None = None
    part: str = "train"
    seed: int = 1

    def job(self, start: str, lines: Sequence[str], output: Path) -> SanitizedConfig:
        """The job that trains the network, from the name or folder that it starts with."""
        options: dict[str, object] = dict(self.options)
        vectors = options.pop("vectors", None)
        return SanitizedConfig(
            text=lines, public=self.public, output=output, model=start, masking=self.masking, epsilon=self.epsilon,
            mechanism=self.mechanism or "santext", vectors=None if vectors is None else str(vectors), options=options,
            length=self.length, steps=self.steps or None, batch=self.batch, learning_rate=self.learning_rate,
            seed=self.seed,
        )  # fmt: skip

    def rewriting(self) -> Rewrite:
        assert self.mechanism is not None
        return Rewrite(mechanism=self.mechanism, epsilon=self.epsilon, options=self.options)


def run(parameters: Sanitized, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    from tacit.training.checkpoint import RunState, run_state
    from tacit.training.private_folder import remove_training

    texts = [texts[0].split()[: parameters.length] for texts in read_part(inputs["data"], parameters.part).texts]
    lines = [" ".join(words) for words in texts if words]
    work = folder / RUN_FOLDER
    start = str(inputs["model"] / MODEL) if "model" in inputs else parameters.network
    check_public(start)
    if start == SMALL:
        start = str(small_network(work / "start", lines, parameters))
    config = parameters.job(start, lines, work / "training")

    def shown(_: str, done: int, total: int) -> None:
        progress(done, total)

    if parameters.steps:
        unfinished = run_state(config.output) is RunState.UNFINISHED
        if not unfinished:
            remove_training(config.output)
        name = "a model of this experiment" if "model" in inputs else parameters.network
        trained = pretrain(config.model_copy(update={"resume": unfinished}), shown, model_name=name)
        losses, kept = trained.losses, trained.words_kept
        shutil.copytree(config.output, folder / MODEL)
    else:
        task, rows = examples(config, lines, shown)
        losses, kept = (), words_kept(rows)
        if "model" in inputs or parameters.network == SMALL:
            shutil.copytree(start, folder / MODEL)
        else:
            save_masked(task, start, parameters.seed, folder / MODEL)
    write_json(folder / "losses.json", list(losses))
    write_json(folder / "about.json", {"words kept": kept, "lines": len(lines)})


def save_masked(task: Task, network: str, seed: int, place: Path) -> None:
    """The network as a masked language model, without further training."""
    import torch

    from tacit.training.models import load_model

    torch.manual_seed(seed)
    for part in load_model(task, network):
        part.save_pretrained(place)


def check_public(start: str) -> None:
    """A model that Tacit trained tells what it has read; that must have been declared public."""
    from tacit.training.models import model_folder

    known = lineage_of(model_folder(start)) if start != SMALL else None
    if known is not None and (known.unpaid is not None or known.paid is not None):
        raise BadInputError(
            "network-not-public",
            "the network '{start}' was trained on text that nobody declared public: take another one, because what is "
            "made from it would carry on what it has read",
            start=start,
        )


def small_network(place: Path, lines: Sequence[str], parameters: Sanitized) -> Path:
    """The folder of a network with random weights and a tokenizer of the public text. It is kept until the step is
    finished: another process would cut the words in another way, because the library breaks ties at random."""
    import torch

    if not place.exists():
        torch.manual_seed(parameters.seed)
        place.parent.mkdir(exist_ok=True, mode=0o700)
        with draft_folder(place) as draft:
            for part in small_bert(lines, parameters):
                part.save_pretrained(draft)
    return place


def small_bert(lines: Sequence[str], parameters: Sanitized) -> tuple[Any, Any]:
    """Random weights, and a tokenizer of the public text."""
    from tacit.training.models import start_from_vectors

    transformers = require("transformers", extra="documents", purpose="a masked language model")
    transformers.utils.logging.disable_progress_bar()
    tokenizer = public_tokenizer(lines, parameters.pieces)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=2 * WIDTH, max_position_embeddings=512, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config)
    if parameters.vectors is not None:
        start_from_vectors(model, tokenizer, parameters.vectors)
    return model, tokenizer


def public_tokenizer(lines: Sequence[str], pieces: int) -> Any:
    """Word pieces of the most frequent words. The text is public, so they are counted without noise."""
    counts = count_words(units_of(list(lines), None, None, lowercase=True), Contribution(10_000, "one"))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:FREQUENT_WORDS]
    none = Guarantee(
        notion=Notion.NONE, epsilon=float("inf"), unit=Unit.RECORD, adjacency=Adjacency.ADD_REMOVE,
        mechanism="counting", void="the text is public",
    )  # fmt: skip
    return build_tokenizer(WordHistogram(words, np.array([counts[word] for word in words]), none), size=pieces)


def score(folder: Path) -> dict[str, float]:
    about, losses = read_json(folder / "about.json"), read_json(folder / "losses.json")
    kept, lines = float(about["words kept"]), int(about["lines"])
    numbers = {"words kept": kept, "lines": float(lines)}
    if read_json(folder / "parameters.json")["masking"] == "aware":
        # The words of a line are not independent; no more is known than that lines are.
        numbers |= scores.Interval(kept, *binomial.interval(kept * lines, lines), lines).named("words kept")
    if not losses:
        return numbers
    tenth = max(1, len(losses) // 10)
    first, last = (scores.t_interval(some) for some in (losses[:tenth], losses[-tenth:]))
    return {**last.named("loss at the end"), **first.named("loss at the beginning"), **numbers}


def check(parameters: Sanitized, inputs: frozenset[str] = frozenset()) -> None:
    from tacit.training.tasks.sanitized import check_word_level

    if parameters.masking == "plain" and (parameters.mechanism or parameters.epsilon or parameters.options):
        raise BadInputError(
            "plain-with-mechanism",
            "masking = \"plain\" rewrites nothing: leave 'mechanism', 'epsilon' and 'options' out",
        )
    if parameters.masking == "aware":
        if parameters.mechanism is None:
            raise BadInputError(
                "aware-without-mechanism",
                "masking = \"aware\" needs the 'mechanism' that rewrites the texts, such as santext",
            )
        check_word_level(find(parameters.mechanism))
        check_mechanism(parameters.rewriting())
    require("torch", extra="training", purpose="training a model")
    if "model" not in inputs and parameters.network != SMALL:
        check_network(parameters.network)


def fits(parameters: Sanitized, inputs: Mapping[str, PlannedCell]) -> None:
    check_part(data_in(inputs), parameters.part, "part")


def meaning(parameters: Sanitized) -> str | None:
    return None if parameters.mechanism is None else meaning_of_rewriting(parameters.rewriting())


KIND = Kind(
    "sanitized", 3, Sanitized, run, score,
    {"data": Input(("data",), public=True), "model": Input(("sanitized",), required=False)}, check,
    epsilon=meaning, measures=("loss at the end", "words kept"), fits=fits,
    further=("loss at the beginning", "lines"),
)  # fmt: skip
