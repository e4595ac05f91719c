"""Writing new rows with a trained model: temperature and nucleus sampling (Holtzman et al. 2020), in batches.

Post-processing: all that goes in is the model, the noisy counts, and public settings. So the random numbers need no
secrecy; they come from a public seed, each batch with its own, and a run that was stopped repeats nothing: what was
written already is read from the draft, and the next batch goes on as it would have.

Rounds: each round asks for what is still missing of every combination of labels; what the filters refuse is asked for
again, for a bounded number of rounds. What is missing then is reported, not filled up.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from tacit.devices import device_of
from tacit.errors import BadInputError, BadParameterError, require
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.training.synthesis.codes import Combination, ControlledWriting
from tacit.training.synthesis.counts import LabelCounts
from tacit.training.synthesis.filters import Filters, Perplexity, Sieve
from tacit.training.tasks.base import Generates

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ROUNDS = 20


@dataclass(frozen=True)
class Sampling:
    """Public settings of the writing."""

    temperature: float = 1.0
    top_p: float = 0.95
    batch: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise BadParameterError(
                "impossible-sampling",
                "the temperature is a positive number, not {temperature}",
                temperature=self.temperature,
            )
        if not 0 < self.top_p <= 1:
            raise BadParameterError(
                "impossible-sampling", "top-p lies above 0 and is at most 1, not {top_p}", top_p=self.top_p
            )
        if self.batch < 1:
            raise BadParameterError("impossible-count", "a batch has at least 1 text, not {count}", count=self.batch)


class Write(Protocol):
    """Texts after these combinations of labels; `number` is that of the batch."""

    def __call__(self, combinations: Sequence[Combination], number: int) -> list[str]: ...


@dataclass(frozen=True)
class Written:
    """The rows, and what became of the others. All of it is post-processing."""

    rows: tuple[tuple[Combination, str], ...]
    generated: int
    refused: dict[str, int]
    missing: dict[Combination, int]


def model_writer(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, task: ControlledWriting, sampling: Sampling
) -> Write:
    """Writes with a causal model of transformers; a batch with different prompts is padded on the left."""
    torch = require("torch", extra="documents", purpose="writing with a model")
    model.eval()
    device = device_of(model)
    padding = next(int(i) for i in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if i is not None)

    def write(combinations: Sequence[Combination], number: int) -> list[str]:
        rows = [task.prompt_ids(combination, tokenizer) for combination in combinations]
        longest = max(len(row) for row in rows)
        ids = torch.tensor([[padding] * (longest - len(row)) + row for row in rows], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows], device=device)
        with torch.random.fork_rng(devices=[]), torch.inference_mode():
            torch.manual_seed(int(public_generator((sampling.seed << 32) + number).integers(1 << 62)))
            made = cast("Generates", model).generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                top_k=0,
                max_new_tokens=max(1, task.length - longest),
                pad_token_id=padding,
                eos_token_id=tokenizer.eos_token_id,
            )
        texts = tokenizer.batch_decode([row[longest:] for row in made.tolist()], skip_special_tokens=True)
        return [text.strip() for text in texts]

    return write


def write_rows(
    write: Write,
    counts: LabelCounts,
    rows: int,
    *,
    task: ControlledWriting,
    filters: Filters,
    sampling: Sampling,
    judge: Perplexity | None = None,
    draft: Draft | None = None,
    progress: StepProgress | None = None,
    rounds: int = ROUNDS,
) -> Written:
    """New rows in the proportions of the counts."""
    wanted = counts.shares(rows)
    kept: dict[Combination, list[str]] = {combination: [] for combination in wanted}
    sieve = Sieve(filters, task.codes, judge)
    number = generated = 0
    for _ in range(rounds):
        missing_rows = [c for c, count in wanted.items() for _ in range(count - len(kept[c]))]
        if not missing_rows:
            break
        for start in range(0, len(missing_rows), sampling.batch):
            part = missing_rows[start : start + sampling.batch]
            texts = draft.texts(number, len(part)) if draft is not None else None
            if texts is None:
                texts = write(part, number)
                if draft is not None:
                    draft.add(number, texts)
            number, generated = number + 1, generated + len(part)
            for combination, text, good in zip(part, texts, sieve.keep(part, texts), strict=True):
                if good:
                    kept[combination].append(text)
            if progress is not None:
                progress(sum(len(written) for written in kept.values()), rows)
    written = [(combination, text) for combination, texts in kept.items() for text in texts]
    order = public_generator(sampling.seed).permutation(len(written))
    missing = {c: count - len(kept[c]) for c, count in wanted.items() if count > len(kept[c])}
    return Written(tuple(written[i] for i in order), generated, dict(Counter(sieve.refused)), missing)


# A run that was stopped -------------------------------------------------------------------------------------------


class Draft:
    """The texts written so far, one line per batch, so that a stopped run can go on. The file holds generated text
    only."""

    def __init__(self, path: Path, settings: dict[str, object], *, resume: bool) -> None:
        self.path = path
        self._settings = settings
        self._batches: list[list[str]] = []
        if path.exists() and not resume:
            raise BadInputError(
                "unfinished-writing",
                "there is an unfinished run, {name}: go on with {option.resume}, or remove that file",
                name=path.name,
            )
        if path.exists():
            self._read()
        else:
            path.write_text(json.dumps({"settings": settings}) + "\n", encoding="utf-8")

    @staticmethod
    def seed_of(path: Path) -> int | None:
        """The seed of an unfinished run, which goes on with it."""
        try:
            with path.open(encoding="utf-8") as file:
                return int(json.loads(file.readline())["settings"]["sampling"]["seed"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _read(self) -> None:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        whole: list[Any] = []
        for line in lines:
            try:
                whole.append(json.loads(line))
            except ValueError:
                break  # the line that was being written when the run stopped
        if not whole or whole[0].get("settings") != json.loads(json.dumps(self._settings)):
            raise BadInputError(
                "another-run",
                "the unfinished run {run} had other settings: repeat its command, or remove that file",
                run=self.path.name,
            )
        self._batches = [list(entry["texts"]) for entry in whole[1:]]
        kept = "".join(json.dumps(entry) + "\n" for entry in whole)
        self.path.write_text(kept, encoding="utf-8")

    def texts(self, number: int, size: int) -> list[str] | None:
        """The texts of a batch that was written already."""
        if number >= len(self._batches):
            return None
        batch = self._batches[number]
        return batch if len(batch) == size else None

    def add(self, number: int, texts: list[str]) -> None:
        del self._batches[number:]
        self._batches.append(texts)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"batch": number, "texts": texts}) + "\n")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def draft_settings(
    *, rows: int, counts: LabelCounts, filters: Filters, sampling: Sampling, task: ControlledWriting, weights: str
) -> dict[str, object]:
    """The settings that must be the same for a stopped run to go on; `weights` names the model by its content."""
    listed = [[list(combination), count] for combination, count in counts.counts.items()]
    return {
        "rows": rows,
        "counts": hashlib.blake2b(json.dumps(listed).encode(), digest_size=16).hexdigest(),
        "filters": asdict(filters),
        "sampling": asdict(sampling),
        "task": task.settings(),
        "weights": weights,
    }
