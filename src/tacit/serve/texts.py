"""`POST /v1/rewrite`: texts in, released texts and their guarantee out, at once or as a stream of lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tacit.engines.nominal import refuse_nominal
from tacit.serve.answers import Answer
from tacit.serve.batching import Order, OrderQueues, Spender
from tacit.serve.budget import Accounts
from tacit.serve.errors import RequestError, ServiceError, as_service_error
from tacit.serve.gate import Caller
from tacit.serve.messages import RewriteRequest, beside, check_json, is_unicode, parse_message
from tacit.serve.metrics import Metrics
from tacit.serve.pool import Pieces, Pool, Prepared
from tacit.serve.reading import MOST_VALUES
from tacit.serve.settings import ServiceSettings
from tacit.serve.written import written

COUNTED_AT_ONCE: Final = 20_000
"""Characters whose tokens are counted without leaving the event loop: some milliseconds."""


class RewriteService:
    """Everything a rewriting request needs, put together once."""

    def __init__(
        self,
        settings: ServiceSettings,
        pool: Pool,
        lines: OrderQueues,
        accounts: Accounts,
        executor: Executor,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._lines = lines
        self._accounts = accounts
        self._executor = executor
        self._metrics = metrics

    async def answer(self, request: Request) -> Response:
        """The answer as JSON, or as a stream if the request wants one."""
        caller: Caller = request.scope["caller"]
        self._lines.check_room(caller.name)
        check_json(request.headers.get("content-type", ""))
        data = await request.body()
        message, texts = await beside(len(data), lambda: self._read(data))
        prepared = await self.prepared(message)
        spender = Spender(caller.name, message.dataset, message.user)
        units = await counted(prepared, texts)
        if caller.options.refuse_nominal:
            refuse_nominal(prepared.card(message.draws, max(units)))
        order = Order(texts * message.draws, spender, message.draws, units)
        self._lines.put(prepared, order)
        if message.stream:
            lines = self._streamed(message, texts, prepared, order)
            first = await anext(lines)  # a refusal still gets its own status
            return StreamingResponse(_after(first, lines), media_type="application/x-ndjson")
        try:
            async with asyncio.timeout(self._settings.timeout):
                released = await order.all()
        except TimeoutError:
            raise ServiceError(
                503,
                RequestError("took-too-long", "this took too long: send fewer texts at a time, or a job"),
                "timeout",
                5,
            ) from None
        finally:
            self._lines.leave(order)
        self._metrics.released(prepared.mechanism.name, message.draws * sum(order.units))

        def put_together() -> bytes:
            draws = [self._draw(message, prepared, texts, part) for part in cut(released, len(texts))]
            return self._with_promises({"draws": draws}, prepared, order)

        body = await beside(sum(map(len, order.texts)), put_together)
        return Response(body, media_type="application/json")

    def _read(self, data: bytes) -> tuple[RewriteRequest, list[str]]:
        message = parse_message(data, RewriteRequest, max(self._settings.texts, MOST_VALUES))
        return message, self._checked_texts(message)

    async def prepared(self, message: RewriteRequest) -> Prepared:
        """From memory if it is there; loading is done beside the event loop."""
        ready = self._pool.ready(message.mechanism, message.epsilon, message.options, tokens_apart=message.tokens)
        if ready is not None:
            return ready
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._executor,
            lambda: self._pool.get(message.mechanism, message.epsilon, message.options, tokens_apart=message.tokens),
        )

    def _checked_texts(self, message: RewriteRequest) -> list[str]:
        if (message.text is None) == (message.texts is None):
            raise ServiceError(422, RequestError("text-or-texts", "give either 'text' or 'texts'"))
        texts = [message.text] if message.text is not None else message.texts or []
        if not texts:
            raise ServiceError(422, RequestError("no-text", "'texts' is empty: give at least one text"))
        if len(texts) * message.draws > self._settings.texts:
            raise ServiceError(
                413,
                RequestError(
                    "too-many-texts",
                    "more than {most:,} texts, counting draws: send fewer at a time",
                    most=self._settings.texts,
                ),
            )
        if max(map(len, texts)) > self._settings.text_characters:
            raise ServiceError(
                413,
                RequestError(
                    "text-too-long",
                    "a text has more than {most:,} characters: send it in parts, or as a job",
                    most=self._settings.text_characters,
                ),
            )
        if sum(map(len, texts)) * message.draws > self._settings.body_bytes:
            raise ServiceError(
                413,
                RequestError(
                    "too-many-characters",
                    "more than {most:,} characters, counting draws: send less",
                    most=self._settings.body_bytes,
                ),
            )
        if not all(map(is_unicode, texts)):
            raise ServiceError(
                422,
                RequestError(
                    "not-unicode", "a text holds half of a surrogate pair, which is not Unicode: repair it first"
                ),
            )
        return texts

    def _draw(
        self, message: RewriteRequest, prepared: Prepared, texts: list[str], released: list[str]
    ) -> Mapping[str, object]:
        if not (message.tokens and prepared.is_word_level):
            return {"texts": released, "pieces": None}
        pairs: list[tuple[str, Pieces]] = [
            prepared.pieces(text, new) for text, new in zip(texts, released, strict=True)
        ]
        return {"texts": [joined for joined, _ in pairs], "pieces": [pieces for _, pieces in pairs]}

    def _with_promises(self, answer: Mapping[str, object], prepared: Prepared, order: Order) -> bytes:
        """One JSON object: the answer, what it cost, and what was promised."""
        spent = self._accounts.spent(prepared, order)
        facts = {"mechanism": prepared.mechanism.name, **answer, "units": order.units, "spent": spent}
        return prepared.promises(order.draws, max(order.units)).after(facts)

    async def _streamed(
        self, message: RewriteRequest, texts: list[str], prepared: Prepared, order: Order
    ) -> AsyncIterator[bytes]:
        """A line for each text, in order; the guarantee comes last. Lines of several would show where slices ended, and
        those are cut by the length of the originals."""
        done = 0
        try:
            async with asyncio.timeout(self._settings.timeout * 10):
                async for part in order.slices():
                    for released in part:
                        draw, place = divmod(done, len(texts))
                        drawn = await beside(
                            len(released), partial(self._draw, message, prepared, [texts[place]], [released])
                        )
                        yield line({"draw": draw, "first": place, **drawn})
                        done += 1
        except Exception as error:
            if done == 0:
                raise
            refusal = as_service_error(error)
            yield line({"error": refusal.facts()})
            return
        finally:
            self._lines.leave(order)
        self._metrics.released(prepared.mechanism.name, message.draws * sum(order.units))
        yield self._with_promises({}, prepared, order) + b"\n"


async def counted(prepared: Prepared, texts: list[str]) -> list[int]:
    """The units of each text; long texts are counted beside the event loop."""

    if sum(map(len, texts)) <= COUNTED_AT_ONCE:
        return prepared.units(texts)
    return await asyncio.to_thread(prepared.units, texts)


def cut(released: list[str], count: int) -> list[list[str]]:
    """The draws: each holds all texts once."""
    return [released[start : start + count] for start in range(0, len(released), count)]


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for item in rest:
        yield item


def line(value: object) -> bytes:
    return written(value) + b"\n"


def json_response(answer: Answer, status: int = 200) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")
