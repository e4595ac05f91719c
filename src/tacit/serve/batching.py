"""Requests that arrive together are rewritten together.

The exponential mechanisms work out a word once however often it stands in a batch, so 64 requests of one text each
cost a fraction of 64 calls. There is no waiting for a batch to fill up: one thread works on a mechanism, and whatever
has arrived by the time it is done makes the next batch. A lone request starts at once.

An order is one request. Before any noise is drawn for it, its whole budget is reserved, for all new orders of a batch
in one transaction; an order that would break a limit is taken out, and the others go on. A long order is worked off in
slices, taking turns with the others, so that nobody waits for a stranger's thousand texts. All noise of a batch comes
from one secure stream that no other thread sees.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final, Protocol

from tacit.noise.source import Source
from tacit.serve.errors import RequestError, ServiceError, as_service_error, note, service_busy
from tacit.serve.metrics import Metrics
from tacit.serve.pool import Prepared

SLICE_TEXTS: Final = 256
SLICE_CHARACTERS: Final = 30_000
BATCH_CHARACTERS: Final = 120_000


@dataclass(frozen=True)
class Spender:
    """Who pays for an order: the key, and what is known about whom the texts are about."""

    key: str | None
    dataset: str | None = None
    user: str | None = None


class BatchReservation(Protocol):
    """Budget that is set aside; it counts as spent from now on."""

    def finished(self, order: Order) -> None:
        """All texts of this order are released."""


class BatchBudget(Protocol):
    """The part of the ledger that a batch uses (`tacit.serve.budget`)."""

    def reserve(self, prepared: Prepared, orders: Sequence[Order]) -> list[Exception | None]:
        """Reserve for each order, or say why not; called by the thread that works on the batch."""


@dataclass(eq=False)
class Order:
    """The texts of one request (each draw counts as texts of its own), and what has become of them."""

    texts: list[str]
    spender: Spender
    draws: int = 1
    units: list[int] = field(default_factory=list)
    reservation: BatchReservation | None = None
    remaining: float | None = None
    position: int = 0
    given_up: bool = False
    parts: asyncio.Queue[list[str] | Exception] = field(default_factory=asyncio.Queue)

    async def slices(self) -> AsyncIterator[list[str]]:
        """Released texts as they are finished; raises what went wrong."""
        received = 0
        while received < len(self.texts):
            part = await self._next()
            received += len(part)
            yield part

    async def all(self) -> list[str]:
        released = await self._next()
        while len(released) < len(self.texts):
            released = released + await self._next()
        return released

    async def _next(self) -> list[str]:
        part = await self.parts.get()
        if isinstance(part, Exception):
            raise part
        return part


Slice = tuple[Order, list[str]]


class Line:
    """Orders for one prepared mechanism, in the order of their arrival."""

    def __init__(self, prepared: Prepared, budget: BatchBudget, executor: Executor, metrics: Metrics) -> None:
        self.prepared = prepared
        self._budget = budget
        self._executor = executor
        self._metrics = metrics
        self._waiting: deque[Order] = deque()
        self._work: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return self._work is None

    def put(self, order: Order) -> None:
        self._waiting.append(order)
        if self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            # One turn of the loop, so that requests which are already read come along in the first batch.
            await asyncio.sleep(0)
            while batch := take(self._waiting):
                self._metrics.batch_texts.observe(sum(len(texts) for _, texts in batch))
                results = await loop.run_in_executor(self._executor, work, self.prepared, self._budget, batch)
                for (order, _), result in zip(batch, results, strict=True):
                    order.parts.put_nowait(result)
                    failed = isinstance(result, Exception)
                    if not failed and not order.given_up and order.position < len(order.texts):
                        self._waiting.append(order)
        finally:
            self._work = None


def take(waiting: deque[Order]) -> list[Slice]:
    """The next batch: one slice of each order, oldest first, as long as they fit."""
    batch: list[Slice] = []
    room = BATCH_CHARACTERS
    while waiting and room > 0:
        order = waiting.popleft()
        if order.given_up:
            continue
        texts = next_slice(order.texts, order.position)
        order.position += len(texts)
        room -= sum(map(len, texts))
        batch.append((order, texts))
    return batch


def next_slice(texts: Sequence[str], start: int) -> list[str]:
    """At least one text, then as many as fit."""
    size, stop = 0, start
    while stop < len(texts) and stop - start < SLICE_TEXTS and size < SLICE_CHARACTERS:
        size += len(texts[stop])
        stop += 1
    return list(texts[start:stop])


def work(prepared: Prepared, budget: BatchBudget, batch: Sequence[Slice]) -> list[list[str] | Exception]:
    """Reserve, draw, commit: one batch in one thread. Never raises; an error is the result of the orders it hit."""
    fresh = [order for order, texts in batch if order.position == len(texts)]
    refused: dict[int, Exception] = {}
    for order, refusal in zip(fresh, _reserved(prepared, budget, fresh), strict=True):
        if refusal is not None:
            refused[id(order)] = refusal
    going = [(order, texts) for order, texts in batch if id(order) not in refused]
    released = dict(zip((id(order) for order, _ in going), _released(prepared, going), strict=True))
    for order, _ in going:
        done = order.position >= len(order.texts) and not isinstance(released[id(order)], Exception)
        if done and order.reservation is not None:
            with contextlib.suppress(Exception):  # what is not committed stays reserved, which counts as spent
                order.reservation.finished(order)
    return [refused.get(id(order)) or released[id(order)] for order, _ in batch]


def _reserved(prepared: Prepared, budget: BatchBudget, orders: Sequence[Order]) -> list[Exception | None]:
    try:
        return budget.reserve(prepared, orders) if orders else []
    except Exception as error:
        return [as_service_error(error)] * len(orders)


def _released(prepared: Prepared, batch: Sequence[Slice]) -> list[list[str] | Exception]:
    """The released texts of each order. When a batch fails, each order is tried alone with new noise, so that one text
    cannot spoil the others; nothing of the failed batch was released."""
    texts = [text for _, some in batch for text in some]
    if not texts:
        return [[] for _ in batch]
    try:
        released = prepared.rewrite(texts, Source.from_os()).texts
        if len(released) != len(texts):
            raise ServiceError(
                500,
                RequestError(
                    "text-lost",
                    "{mechanism} lost a text, and nothing was released. Please report",
                    mechanism=prepared.mechanism.name,
                ),
            )
    except Exception as error:
        if len(batch) == 1:
            note(error)
            return [as_service_error(error)]
        return [_released(prepared, [single])[0] for single in batch]
    ends = list(itertools.accumulate(len(some) for _, some in batch))
    return [released[end - len(some) : end] for end, (_, some) in zip(ends, batch, strict=True)]


class OrderQueues:
    """A line per prepared mechanism, and a limit on how many orders wait in all of them."""

    def __init__(self, budget: BatchBudget, executor: Executor, metrics: Metrics, most_waiting: int) -> None:
        self._budget = budget
        self._executor = executor
        self._metrics = metrics
        self._most_waiting = most_waiting
        self._lines: dict[int, Line] = {}
        self._open_of: Counter[str | None] = Counter()
        self.open = 0

    def check_room(self, key: str | None) -> None:
        """One key has at most half of the places, so that it cannot keep all others out."""
        if self.open >= self._most_waiting:
            raise service_busy()
        if key is not None and self._open_of[key] >= max(1, self._most_waiting // 2):
            raise ServiceError(
                429,
                RequestError(
                    "too-many-waiting-requests", "too many of your requests wait at the same time: send fewer"
                ),
                retry_after=1,
            )

    def put(self, prepared: Prepared, order: Order) -> None:
        self.check_room(order.spender.key)
        line = self._lines.get(id(prepared))
        if line is None:
            # A mechanism that the pool has forgotten needs no line any more.
            self._lines = {key: known for key, known in self._lines.items() if not known.idle}
            line = self._lines[id(prepared)] = Line(prepared, self._budget, self._executor, self._metrics)
        self.open += 1
        self._open_of[order.spender.key] += 1
        self._metrics.waiting.set(self.open)
        line.put(order)

    def leave(self, order: Order) -> None:
        """The request is answered or given up."""
        order.given_up = True
        self.open -= 1
        self._open_of[order.spender.key] -= 1
        self._metrics.waiting.set(self.open)
