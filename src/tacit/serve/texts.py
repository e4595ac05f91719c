"""`POST /v1/rewrite`: texts in, released texts and their guarantee out, at once or as a stream of lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from tacit.engines.nominal import refuse_nominal
from tacit.serve.batching import Lines, Order, Spender
from tacit.serve.budget import Accounts
from tacit.serve.errors import ServiceError, as_service_error
from tacit.serve.gate import Caller, Headers, Receive
from tacit.serve.messages import RewriteRequest, beside, check_json, is_unicode, parse_message
from tacit.serve.metrics import Metrics
from tacit.serve.reading import MOST_VALUES
from tacit.serve.rewriting import Pieces, Pool, Prepared
from tacit.serve.settings import Settings

Draw = dict[str, Any]
COUNTED_AT_ONCE: Final = 20_000
"""Characters whose tokens are counted without leaving the event loop: some milliseconds."""


class Rewriting:
    """Everything a rewriting request needs, put together once."""

    def __init__(
        self, settings: Settings, pool: Pool, lines: Lines, accounts: Accounts, executor: Executor, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._pool = pool
        self._lines = lines
        self._accounts = accounts
        self._executor = executor
        self._metrics = metrics

    async def answer(self, caller: Caller, headers: Headers, receive: Receive) -> Response | bytes:
        """The answer as JSON, or as a stream if that is asked for."""
        self._lines.check_room(caller.name)
        check_json(headers.get(b"content-type", b"").decode("latin-1"))
        data = await whole_body(receive)
        request, texts = await beside(len(data), lambda: self._read(data))
        prepared = await self.prepared(request)
        spender = Spender(caller.name, request.dataset, request.user)
        units = await counted(prepared, texts)
        if caller.options.refuse_nominal:
            refuse_nominal(prepared.card(request.draws, max(units)))
        order = Order(texts * request.draws, spender, request.draws, units)
        self._lines.put(prepared, order)
        if request.stream:
            lines = self._streamed(request, texts, prepared, order)
            first = await anext(lines)  # a refusal still gets its own status
            return StreamingResponse(_after(first, lines), media_type="application/x-ndjson")
        try:
            async with asyncio.timeout(self._settings.timeout):
                released = await order.all()
        except TimeoutError:
            raise ServiceError(503, "this took too long: send fewer texts at a time, or a job", "timeout", 5) from None
        finally:
            self._lines.leave(order)
        self._metrics.released(prepared.mechanism.name, request.draws * sum(order.units))

        def put_together() -> bytes:
            draws = [self._draw(request, prepared, texts, part) for part in cut(released, len(texts))]
            return self._with_promises({"draws": draws}, prepared, order)

        return await beside(sum(map(len, order.texts)), put_together)

    def _read(self, data: bytes) -> tuple[RewriteRequest, list[str]]:
        request = parse_message(data, RewriteRequest, max(self._settings.texts, MOST_VALUES))
        return request, self._checked_texts(request)

    async def prepared(self, request: RewriteRequest) -> Prepared:
        """From memory if it is there; loading is done beside the event loop."""
        ready = self._pool.ready(request.mechanism, request.epsilon, request.options, tokens_apart=request.tokens)
        if ready is not None:
            return ready
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._executor,
            lambda: self._pool.get(request.mechanism, request.epsilon, request.options, tokens_apart=request.tokens),
        )

    def _checked_texts(self, request: RewriteRequest) -> list[str]:
        if (request.text is None) == (request.texts is None):
            raise ServiceError(422, "give either 'text' or 'texts'")
        texts = [request.text] if request.text is not None else request.texts or []
        if not texts:
            raise ServiceError(422, "'texts' is empty: give at least one text")
        if len(texts) * request.draws > self._settings.texts:
            raise ServiceError(413, f"more than {self._settings.texts:,} texts, counting draws: send fewer at a time")
        if max(map(len, texts)) > self._settings.text_characters:
            raise ServiceError(
                413,
                f"a text has more than {self._settings.text_characters:,} characters: send it in parts, or as a job",
            )
        if sum(map(len, texts)) * request.draws > self._settings.body_bytes:
            raise ServiceError(413, f"more than {self._settings.body_bytes:,} characters, counting draws: send less")
        if not all(map(is_unicode, texts)):
            raise ServiceError(422, "a text holds half of a surrogate pair, which is not Unicode: repair it first")
        return texts

    def _draw(self, request: RewriteRequest, prepared: Prepared, texts: list[str], released: list[str]) -> Draw:
        if not (request.tokens and prepared.is_word_level):
            return {"texts": released, "pieces": None}
        pairs: list[tuple[str, Pieces]] = [
            prepared.pieces(text, new) for text, new in zip(texts, released, strict=True)
        ]
        return {"texts": [joined for joined, _ in pairs], "pieces": [pieces for _, pieces in pairs]}

    def _with_promises(self, answer: dict[str, Any], prepared: Prepared, order: Order) -> bytes:
        """One JSON object: the answer, what it cost, and what was promised."""
        spent = self._accounts.spent(prepared, order)
        facts = {"mechanism": prepared.mechanism.name, **answer, "units": order.units, "spent": spent}
        promises = prepared.promises(order.draws, max(order.units))
        return json.dumps(facts, ensure_ascii=False, allow_nan=False)[:-1].encode("utf-8") + promises

    async def _streamed(
        self, request: RewriteRequest, texts: list[str], prepared: Prepared, order: Order
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
                            len(released), partial(self._draw, request, prepared, [texts[place]], [released])
                        )
                        yield line({"draw": draw, "first": place, **drawn})
                        done += 1
        except Exception as error:
            if done == 0:
                raise
            refusal = as_service_error(error)
            yield line({"error": {"code": refusal.code, "message": refusal.message}})
            return
        finally:
            self._lines.leave(order)
        self._metrics.released(prepared.mechanism.name, request.draws * sum(order.units))
        yield self._with_promises({}, prepared, order) + b"\n"


async def whole_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def counted(prepared: Prepared, texts: list[str]) -> list[int]:
    """The units of each text; long texts are counted beside the event loop."""

    def count() -> list[int]:
        return [prepared.units(text) for text in texts]

    return count() if sum(map(len, texts)) <= COUNTED_AT_ONCE else await asyncio.to_thread(count)


def cut(released: list[str], count: int) -> list[list[str]]:
    """The draws: each holds all texts once."""
    return [released[start : start + count] for start in range(0, len(released), count)]


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for item in rest:
        yield item


def line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def json_response(value: Any, status: int = 200) -> Response:
    data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    return Response(data, status, media_type="application/json")
