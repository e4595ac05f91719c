"""Extraction: let a causal language model write, and look for what it wrote in its training data.

Carlini et al., "Extracting training data from large language models" (USENIX Security 2021). For each output: the
longest run of tokens that stands verbatim in a training text, whether the whole output does, and the token edits to the
closest part of a training text (near-duplicates).

Every text shares some runs with every large file. The control is a file of the same kind that the model has not seen,
cut to the same number of tokens as the training file: what is found there is chance. An output counts as extracted if
its run is at least `smallest_run` tokens long and longer than any run of any output in the control. Measured on these
outputs; that nothing was found does not show that nothing can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from scipy.stats import binomtest

from tacit.auditing.models.overlap import Corpus, TextOverlap
from tacit.devices import device_of
from tacit.errors import BadInputError, BadParameterError, require
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.report import Finding, Light, Section, Table
from tacit.text.tokens import split

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tacit.training.tasks.base import Generates

SMALLEST_RUN = 8
NEAR = 0.8
BATCH = 16


@dataclass(frozen=True)
class ModelOutput:
    """An output of the model after a prompt, and what of it stands in the training file and in the control."""

    prompt: str
    text: str
    training: TextOverlap
    control: TextOverlap


@dataclass(frozen=True)
class Extraction:
    """The result of an extraction: what was looked for, and what the model wrote of it.

    chance_run   the longest run of any output in the control, where nothing can have been memorized
    p_value      of a sign test: are runs longer in training texts than in as many tokens of the control?
    """

    outputs: tuple[ModelOutput, ...]
    training_tokens: int
    control_tokens: int
    smallest_run: int
    chance_run: int
    p_value: float
    seed: int

    @property
    def bar(self) -> int:
        return max(self.smallest_run, self.chance_run + 1)

    @property
    def extracted(self) -> list[ModelOutput]:
        return [output for output in self.outputs if output.training.run >= self.bar]

    @property
    def verbatim(self) -> list[ModelOutput]:
        return [output for output in self.extracted if output.training.verbatim]

    @property
    def near_duplicates(self) -> list[ModelOutput]:
        return [
            output
            for output in self.outputs
            if output.training.tokens >= self.smallest_run
            and output.training.similarity >= NEAR > output.control.similarity
        ]


def sample(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str] = ("",),
    *,
    samples: int = 100,
    tokens: int = 48,
    temperature: float = 1.0,
    top_k: int = 40,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> list[tuple[str, str]]:
    """`samples` pairs of prompt and continuation, as many for each prompt. An empty prompt starts with the token that
    begins a text."""
    torch = require("torch", extra="documents", purpose="sampling from a model")
    if samples < 1 or tokens < 1 or temperature <= 0 or not prompts:
        raise BadParameterError(
            "impossible-extraction",
            "extraction needs a prompt, at least 1 sample of 1 token, and a positive temperature",
        )
    starts = {prompt: _start(model, tokenizer, prompt) for prompt in prompts}
    share = {prompt: len(range(place, samples, len(prompts))) for place, prompt in enumerate(prompts)}
    done, outputs = 0, []
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(int(public_generator(seed).integers(1 << 31)))
        for prompt in dict.fromkeys(prompts):
            left = share[prompt]
            while left > 0:
                ids = torch.tensor([starts[prompt]] * min(BATCH, left)).to(device_of(model))
                written = cast("Generates", model).generate(
                    input_ids=ids,
                    attention_mask=torch.ones_like(ids),
                    do_sample=True,
                    temperature=temperature,
                    top_k=top_k,
                    max_new_tokens=_fitting(model, ids.shape[1], tokens),
                    pad_token_id=_padding(tokenizer),
                )
                rows = [row[ids.shape[1] :] for row in written.tolist()]
                texts = tokenizer.batch_decode(rows, skip_special_tokens=True)
                outputs += [(prompt, text.strip()) for text in texts]
                left -= len(ids)
                done += len(ids)
                if progress:
                    progress(done, samples)
    return outputs


def _start(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    ids = [int(i) for i in tokenizer(prompt)["input_ids"]] if prompt else []
    if ids:
        return ids
    for first in (tokenizer.bos_token_id, model.config.bos_token_id, tokenizer.eos_token_id):
        if first is not None:
            return [int(first)]
    raise BadInputError(
        "no-token-begins-a-text", "this model names no token that begins a text: give a prompt with {option.prompts}"
    )


def _fitting(model: PreTrainedModel, used: int, wanted: int) -> int:
    limits = [getattr(model.config, name, None) for name in ("max_position_embeddings", "n_positions")]
    room = min((int(limit) for limit in limits if limit), default=used + wanted) - used
    if room < 1:
        raise BadInputError("prompt-too-long", "the prompt fills all positions of the model: give a shorter one")
    return min(wanted, room)


def _padding(tokenizer: PreTrainedTokenizerBase) -> int:
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0


def compare(
    outputs: Sequence[tuple[str, str]],
    training: Sequence[str],
    control: Sequence[str],
    *,
    smallest_run: int = SMALLEST_RUN,
    seed: int = 0,
) -> Extraction:
    """Outputs against the training file and a control of the same size."""
    if not training or not control:
        raise BadInputError(
            "extraction-without-control",
            "extraction needs the training texts and a control file of texts the model has not seen",
        )
    ours, theirs = Corpus(training), _same_size(control, training, seed)
    shorter = _same_size(training, theirs.texts, seed) if ours.tokens > theirs.tokens else ours
    texts = [text for _, text in outputs]
    in_training, in_control = ours.overlaps(texts), theirs.overlaps(texts)
    fair = in_training if shorter is ours else shorter.overlaps(texts)
    longer = sum(a.run > b.run for a, b in zip(fair, in_control, strict=True))
    untied = sum(a.run != b.run for a, b in zip(fair, in_control, strict=True))
    test = float(binomtest(longer, untied, 0.5, alternative="greater").pvalue) if untied else 1.0
    rows = tuple(
        ModelOutput(prompt, text, a, b)
        for (prompt, text), a, b in zip(outputs, in_training, in_control, strict=True)
        if a.tokens
    )
    chance = max((row.control.run for row in rows), default=0)
    return Extraction(rows, ours.tokens, theirs.tokens, smallest_run, chance, test, seed)


def _same_size(texts: Sequence[str], other: Sequence[str], seed: int) -> Corpus:
    """Random texts, with at most about as many tokens as the other file has: a larger file holds longer runs by
    chance."""
    goal = sum(len(split(text)) for text in other)
    chosen: list[str] = []
    count = 0
    for place in public_generator(seed).permutation(len(texts)):
        if count >= goal:
            break
        chosen.append(texts[place])
        count += len(split(texts[place]))
    return Corpus(chosen)


# For a report -----------------------------------------------------------------------------------------------------


def extraction_section(extraction: Extraction, training: Sequence[str], *, false_alarm: float = 0.01) -> Section:
    """The section about what was extracted, with the worst outputs as a private table."""
    outputs = len(extraction.outputs)
    if not outputs:
        finding = Finding("Extraction", Light.AMBER, "The model wrote nothing that could be compared.")
        return Section("Extraction", findings=(finding,))
    if extraction.extracted or extraction.near_duplicates:
        light = Light.RED
    else:
        light = Light.AMBER if extraction.p_value < false_alarm else Light.GREEN
    longest = max(extraction.outputs, key=lambda output: output.training.run)
    sentence = (
        f"{len(extraction.extracted):,} of {outputs:,} outputs repeat {extraction.bar} or more tokens of a training "
        "text in a "
        f"row, {len(extraction.verbatim):,} of them from beginning to end; {len(extraction.near_duplicates):,} are "
        f"near-duplicates. The longest run has {longest.training.run} tokens; in the control file, by chance, "
        f"{extraction.chance_run}."
    )
    if extraction.control_tokens < extraction.training_tokens / 2:
        sentence += (
            f" The control is small ({extraction.control_tokens:,} tokens for {extraction.training_tokens:,}), and "
            "chance runs grow with a file: a larger control would say more."
        )
    if light is Light.AMBER:
        sentence += (
            f" Runs in the training texts are longer than in the control (sign test, p = {extraction.p_value:.2g})."
        )
    why = (
        f"Red: an output repeats at least {extraction.smallest_run} tokens in a row and more than any output shares "
        f"with the control, or differs from a training text in at most {1 - NEAR:.0%} of its tokens. Amber: runs are "
        f"longer than in an equally large control, with a false-alarm rate of {false_alarm:g}. Green: neither, for "
        "these prompts and samples."
    )
    numbers = {
        "outputs": outputs, "extracted": len(extraction.extracted), "verbatim": len(extraction.verbatim),
        "near_duplicates": len(extraction.near_duplicates), "longest_run": longest.training.run,
        "chance_run": extraction.chance_run, "p_value": extraction.p_value,
        "training_tokens": extraction.training_tokens, "control_tokens": extraction.control_tokens,
    }  # fmt: skip
    worst = sorted(extraction.outputs, key=lambda o: (-o.training.run, -o.training.similarity))[:10]
    table = Table(
        "Outputs closest to the training data",
        ("run", "run in control", "edits", "prompt", "output", "closest training text"),
        [
            (
                o.training.run,
                o.control.run,
                o.training.distance,
                o.prompt,
                o.text,
                training[o.training.nearest] if o.training.nearest >= 0 else "",
            )
            for o in worst
        ],
        private=True,
    )
    return Section(
        "Extraction",
        "What the model writes by itself, looked up in its training data and in a control of the same size.",
        (Finding("Extraction", light, sentence, why, numbers=numbers),),
        (table,),
    )
