"""The layers below the lowest trained one, computed once: their output is the same in every epoch.

With the strategies `head`, `last-K` and `all-layers` the embeddings and the lower layers of an encoder never change.
Their output for each record is computed before the first step (without dropout) and kept in half precision; each step
then runs only the layers above. The layers of both parts are those of the model itself, not copies.

Whether a model can be cut like this is not guessed: the two parts, one after the other, must give what the whole model
gives on made-up records, or the model is trained as a whole.

What is kept of a record must not depend on the others: the half precision would turn another rounding error into
another number, for many records at once. So records are computed in constant shapes, (`ROWS`, a multiple of `WIDTHS`),
filled up with made-up ones; whether a record then has the same numbers, bit for bit, in any place and beside any others
is tried on made-up records, and if not, each record is computed alone.

A process that trains several models on the same records above the same layers computes them once (`StateMemory`).

With `fast` the lower half is computed in 16 bits (bfloat16), which takes half the time and moves a number by some
thousandths of it. That is another fixed function of a record, no less private than the first: the trial above decides
about it as well.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.devices import device_of, moved
from tacit.noise.source import public_generator
from tacit.precision import Precision, in_sixteen_bits
from tacit.progress import StepProgress
from tacit.training.gradients import Batch, Filled
from tacit.training.pass_on import PassOn, PassOnStates
from tacit.training.tasks import Encoded, Task
from tacit.training.tasks.base import model_inputs

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Part = TypeVar("Part", bound=nn.Module)

LARGEST_BYTES = 3 * 2**30
REMEMBERED_BYTES = 2**28
ROWS = 64
WIDTHS = 8
TOLERANCE = 1e-4
LAYER_LISTS = ("encoder.layer", "transformer.layer")


@dataclass
class Halves:
    """bottom: from word pieces to the input of the lowest trained layer; top: the rest of the model."""

    bottom: nn.Module
    top: nn.Module
    fast: bool = False

    @torch.no_grad()
    def below(self, batch: Batch) -> Tensor:
        self.bottom.eval()
        device = device_of(self.bottom)
        with torch.autocast(device.type, torch.bfloat16) if self.fast else nullcontext():
            hidden: Tensor = self.bottom(**model_inputs(moved(batch, device))).last_hidden_state
        return hidden.float()

    def continued(self, batch: Batch) -> dict[str, Tensor]:
        return {**batch, "inputs_embeds": self.below(batch)}

    def continued_alone(self, record: Filled) -> Filled:
        """A record whose lower half is computed alone, and which is filled up with zeros above: as `Kept` does it."""
        alone = self.continued(record.alone)
        states = alone["inputs_embeds"]
        longer = []
        for batch in record.longer:
            more = batch["input_ids"].shape[1] - states.shape[1]
            longer.append({**batch, "inputs_embeds": nn.functional.pad(states, (0, 0, 0, more))})
        return Filled(alone, tuple(longer))


def cut(model: nn.Module, task: Task, probes: Sequence[Batch]) -> Halves | None:
    """The two halves of a model, or None if nothing can be saved or the cut is not exact."""
    if not task.fixed_inputs:
        return None
    halves = _halves(model)
    return halves if halves is not None and _is_exact(halves, model, task, probes) else None


def _is_exact(halves: Halves, model: nn.Module, task: Task, probes: Sequence[Batch]) -> bool:
    """Whether the halves, one after the other, give what the whole model gives on made-up records.

    The code of a model that we do not know runs with some of its parts replaced. Whatever it raises then, the whole
    model has just run on the same records without, so the cut is what it cannot do, and the model runs as a whole.
    """
    training = model.training
    model.eval()
    halves.top.eval()
    try:
        with torch.no_grad():
            whole = [task.loss(model, batch) for batch in probes]
            try:
                cut_up = [task.loss(halves.top, halves.continued(batch)) for batch in probes]
            except Exception:
                return False
    finally:
        model.train(training)
        halves.top.train(training)
    return all(float((a - b).abs().max()) <= TOLERANCE for a, b in zip(whole, cut_up, strict=True))


def _halves(model: nn.Module) -> Halves | None:
    prefix = getattr(model, "base_model_prefix", "")
    body = getattr(model, prefix, None) if prefix else None
    if not isinstance(body, nn.Module):
        return None
    if getattr(body, "wholly_frozen", False):
        top = _opened(model)
        top._modules[prefix] = PassOnStates()
        return Halves(body, top)
    path = next((path for path in LAYER_LISTS if _has(body, path)), None)
    embeddings = getattr(body, "embeddings", None)
    if path is None or not isinstance(embeddings, nn.Module):
        return None
    owner, _, name = path.partition(".")
    layers = body.get_submodule(path)
    assert isinstance(layers, nn.ModuleList)
    trained = [i for i, layer in enumerate(layers) if any(p.requires_grad for p in layer.parameters())]
    first = min(trained, default=len(layers))
    below = [embeddings, *layers[:first]]
    if first == 0 or any(p.requires_grad for part in below for p in part.parameters()):
        return None
    bottom, top_body, top = _opened(body), _opened(body), _opened(model)
    _set_layers(bottom, owner, name, layers[:first])
    if "pooler" in bottom._modules:
        bottom._modules["pooler"] = None
    _set_layers(top_body, owner, name, layers[first:])
    top_body._modules["embeddings"] = PassOn()
    top._modules[prefix] = top_body
    return Halves(bottom, top)


def _has(body: nn.Module, path: str) -> bool:
    try:
        return isinstance(body.get_submodule(path), nn.ModuleList)
    except AttributeError:
        return False


def _opened(module: Part) -> Part:
    """A module with the same parts whose list of parts can be changed without changing the original's."""
    opened = copy.copy(module)
    opened._modules = dict(module._modules)
    return opened


def _set_layers(body: nn.Module, owner: str, name: str, layers: Iterable[nn.Module]) -> None:
    inner = _opened(body.get_submodule(owner))
    inner._modules[name] = nn.ModuleList(layers)
    body._modules[owner] = inner


@dataclass
class Kept:
    """The output of the lower half for every record, one after the other, in half precision, in the memory of the
    processor."""

    values: Tensor
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64] = field(repr=False)

    @property
    def bytes(self) -> int:
        return self.values.numel() * self.values.element_size()

    def of(self, records: Sequence[int], width: int) -> Tensor:
        """(B, width, hidden), zero where a record has ended."""
        states = torch.zeros(len(records), width, self.values.shape[1])
        for row, record in enumerate(records):
            start, length = int(self.starts[record]), int(self.lengths[record])
            states[row, :length] = self.values[start : start + length].float()
        return states

    def added(self, batch: Batch, records: Sequence[int]) -> Batch:
        """A batch of these records for the upper half, on the device of the batch."""
        pieces = batch["input_ids"]
        return {**batch, "inputs_embeds": self.of(records, pieces.shape[1]).to(pieces.device)}


class StateMemory:
    """A memory of the states that lower halves of models computed for records, up to so many bytes, the last used kept
    longest; and of the shapes in which records are known to be independent of each other."""

    def __init__(self, most_bytes: int = REMEMBERED_BYTES) -> None:
        self.most_bytes = most_bytes
        self._states: OrderedDict[bytes, Kept] = OrderedDict()
        self._independent: dict[tuple[object, ...], bool] = {}

    @property
    def used_bytes(self) -> int:
        """How much is remembered now."""
        return sum(states.bytes for states in self._states.values())

    def states(self, digest: bytes) -> Kept | None:
        """The states of the same layers and records, if they are still in memory."""
        if digest in self._states:
            self._states.move_to_end(digest)
        return self._states.get(digest)

    def keep(self, digest: bytes, states: Kept) -> None:
        """Remember states; what was not used for the longest time makes room."""
        self._states[digest] = states
        while self.used_bytes > self.most_bytes:
            self._states.popitem(last=False)

    def are_independent(self, halves: Halves, task: Task, tokenizer: PreTrainedTokenizerBase, rows: int) -> bool:
        """Whether made-up records have the same numbers, bit for bit, whatever is computed beside them. It is a matter
        of the machine and of shapes, so it is tried once for models of one shape."""
        shapes = tuple((name, tuple(value.shape)) for name, value in halves.bottom.named_parameters())
        device = str(device_of(halves.bottom))
        key = (type(halves.bottom), shapes, halves.fast, type(task), task.length, rows, torch.get_num_threads(), device)
        if key not in self._independent:
            self._independent[key] = _are_independent(halves, task, tokenizer, rows)
        return self._independent[key]


PROCESS_MEMORY: Final = StateMemory()
"""The memory of this process, which all trainings in it share unless they are given another."""


def computed_once(
    model: nn.Module,
    task: Task,
    encoded: Sequence[Encoded],
    tokenizer: PreTrainedTokenizerBase,
    *,
    precision: Precision = "float32",
    progress: StepProgress = lambda done, total: None,
) -> tuple[Halves, Kept] | tuple[None, None]:
    """The halves of a model, and what the lower one makes of all records; or neither, if it has to run as a whole, as
    with records that are not filled up on the right, to the longest."""
    if task.constant or task.side_of("input_ids", tokenizer) == "left":
        return None, None
    hidden = int(getattr(getattr(model, "config", None), "hidden_size", 0) or 0)
    if not hidden or not fits(encoded, hidden):
        return None, None
    device = device_of(model)
    halves = cut(model, task, [moved(probe, device) for probe in task.probes(tokenizer)])
    if halves is None:
        return None, None
    halves.fast = in_sixteen_bits(precision, device.type)
    return halves, keep(halves, task, encoded, tokenizer, hidden=hidden, progress=progress)


def fits(encoded: Sequence[Encoded], hidden: int) -> bool:
    return sum(len(example["input_ids"]) for example in encoded) * hidden * 2 <= LARGEST_BYTES


def keep(
    halves: Halves,
    task: Task,
    encoded: Sequence[Encoded],
    tokenizer: PreTrainedTokenizerBase,
    *,
    hidden: int,
    batch: int = ROWS,
    progress: StepProgress = lambda done, total: None,
    memory: StateMemory | None = None,
) -> Kept:
    """Run the lower half over all records once; what the memory still holds is taken as it is."""
    memory = PROCESS_MEMORY if memory is None else memory
    digest = _digest(halves, task, encoded, tokenizer, batch)
    states = memory.states(digest)
    if states is not None:
        progress(len(encoded), len(encoded))
        return states
    rows = batch if batch > 1 and memory.are_independent(halves, task, tokenizer, batch) else 1
    states = _computed(halves, task, encoded, tokenizer, hidden, rows, progress)
    memory.keep(digest, states)
    return states


def _computed(
    halves: Halves,
    task: Task,
    encoded: Sequence[Encoded],
    tokenizer: PreTrainedTokenizerBase,
    hidden: int,
    rows: int,
    progress: StepProgress,
) -> Kept:
    lengths = np.array([len(example["input_ids"]) for example in encoded], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    values = torch.empty(int(lengths.sum()), hidden, dtype=torch.float16)
    done = 0
    for records in _together(lengths, task.length, rows):
        states = _filled(halves, task, [encoded[i] for i in records], tokenizer, rows).half().cpu()
        for row, record in enumerate(records):
            start = int(starts[record])
            values[start : start + int(lengths[record])] = states[row, : int(lengths[record])]
        done += len(records)
        progress(done, len(encoded))
    return Kept(values, starts, lengths)


def _digest(
    halves: Halves, task: Task, encoded: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase, batch: int
) -> bytes:
    """Of all that the numbers depend on: the layers, the records, and the shapes that they are computed in."""
    digest = hashlib.blake2b(digest_size=32)
    settings = (
        str(getattr(halves.bottom, "config", "")),
        halves.fast,
        task.length,
        batch,
        torch.get_num_threads(),
        str(device_of(halves.bottom)),
    )
    filling = {name: task.padding(name, tokenizer) for name in (encoded[0] if encoded else {})}
    digest.update(pickle.dumps((type(halves.bottom).__qualname__, settings, filling)))
    for name, value in halves.bottom.state_dict().items():
        digest.update(pickle.dumps((name, str(value.dtype), tuple(value.shape))))
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    for example in encoded:
        digest.update(pickle.dumps(sorted(example.items())))
    return digest.digest()


def _width(length: int, most: int) -> int:
    """The shape in which a record of this length is computed; `most` is the longest that the task reads (public)."""
    return max(length, min(-(-length // WIDTHS) * WIDTHS, most))


def _together(lengths: NDArray[np.int64], most: int, rows: int) -> Iterator[list[int]]:
    """Records of one width, `rows` at most."""
    widths: dict[int, list[int]] = defaultdict(list)
    for record, length in enumerate(lengths.tolist()):
        widths[_width(length, most)].append(record)
    for width in sorted(widths):
        for begin in range(0, len(widths[width]), rows):
            yield widths[width][begin : begin + rows]


def _filled(
    halves: Halves, task: Task, examples: Sequence[Encoded], tokenizer: PreTrainedTokenizerBase, rows: int
) -> Tensor:
    """The lower half of these records, in the shape that all records of their width are computed in."""
    if rows == 1:
        return halves.below(task.collate(examples, tokenizer))
    width = _width(max(len(example["input_ids"]) for example in examples), task.length)
    wide = [_widened(example, width, task, tokenizer) for example in examples]
    filler = {
        name: [1 if name == "attention_mask" else 0] * width if isinstance(value, list) else value
        for name, value in wide[0].items()
    }
    return halves.below(task.collate([*wide, *[filler] * (rows - len(wide))], tokenizer))


def _widened(example: Encoded, width: int, task: Task, tokenizer: PreTrainedTokenizerBase) -> Encoded:
    return {
        name: [*value, *[task.padding(name, tokenizer)] * (width - len(value))] if isinstance(value, list) else value
        for name, value in example.items()
    }


def _are_independent(halves: Halves, task: Task, tokenizer: PreTrainedTokenizerBase, rows: int) -> bool:
    generator = public_generator(11)
    for width in sorted({WIDTHS, 2 * WIDTHS, _width(task.length, task.length)}):
        made = [_of_width(task.probe(generator, tokenizer), width - number % 4) for number in range(rows)]
        beside = _filled(halves, task, made, tokenizer, rows)
        for place in (rows // 2, rows - 1):
            length = len(made[place]["input_ids"])
            if _width(length, task.length) != _width(width, task.length):
                continue
            alone = _filled(halves, task, [made[place]], tokenizer, rows)
            if not torch.equal(alone[0, :length], beside[place, :length]):
                return False
    return True


def _of_width(example: Encoded, length: int) -> Encoded:
    """A made-up record of this length: repeated, and cut."""
    return {
        name: (value * (1 + length // max(1, len(value))))[: max(1, length)] if isinstance(value, list) else value
        for name, value in example.items()
    }
