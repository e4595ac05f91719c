"""Charges of requests and jobs, recorded in the ledger before any noise is drawn.

The budget of a key counts everything that was ever released to it, as if all texts were about the same person: nobody
has to know whose texts they were for the sum to be an upper bound. Each text is charged as well, recognized by its
content, whether or not there is a limit per document yet: what was spent before a limit counts under it.
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from tacit.account.ledger import (
    BudgetExceededError,
    KeyChangedError,
    Ledger,
    LedgerError,
    Limit,
    Reservation,
    Spent,
    Subject,
)
from tacit.account.ledger.charges import NOTHING, PLAIN
from tacit.engines.charging import text_subject
from tacit.serve.answers import (
    ApartFacts,
    KeyFacts,
    KeyLimit,
    KeySpent,
    LedgerReleaseFacts,
    LimitFacts,
    Overview,
    UnitSpent,
)
from tacit.serve.batching import Order
from tacit.serve.binding import LOCAL, check_bound, open_bound
from tacit.serve.errors import RequestError, ServiceError, WrongLedgerError, as_service_error, note
from tacit.serve.examples import is_public
from tacit.serve.keys import NO_OPTIONS, KeyBudget, KeyOptions, Keys
from tacit.serve.metrics import Metrics
from tacit.serve.pool import Prepared
from tacit.serve.settings import ServicePlace

log = logging.getLogger("tacit.serve")

DATASET: Final = "service"
"""The data set of requests that name none."""
RELEASES: Final = 100
COMMAND: Final = "tacit serve"
CHECK_SECONDS: Final = 1.0
MOST_CHANGES: Final = 5
"""So many changes of the ledger's key are followed within one use of it."""
R = TypeVar("R")


class SharedReservation:
    """One reservation for the orders of a batch that have the same payer; committed when the last of them is out."""

    def __init__(self, reservation: Reservation, orders: Sequence[Order]) -> None:
        self._reservation = reservation
        self._open = {id(order) for order in orders}

    def finished(self, order: Order) -> None:
        self._open.discard(id(order))
        if not self._open:
            self._reservation.commit()


class Accounts:
    """The ledger, as the service uses it. Opened when it is first needed, and again after it could not be used.

    Proof obligation: nothing is released to a key unless the ledger that counts for this state folder (`binding`) is
    the one that is open, and, for a key that was given a budget, unless that ledger has a limit for it. The former is
    asked with every use of `ledger`, the latter inside the transaction that reserves.
    """

    def __init__(self, place: str, metrics: Metrics, keys: Keys) -> None:
        self._place = place
        self._metrics = metrics
        self._keys = keys
        self._lock = threading.Lock()
        self._ledger: Ledger | None = None
        self._checked, self._works = -math.inf, False

    @property
    def ledger(self) -> Ledger:
        with self._lock:
            if self._ledger is None:
                self._ledger = open_bound(self._place, self._keys)
                if self._ledger.making is not None:
                    log.warning("%s", self._ledger.making)
            ledger = self._ledger
        check_bound(ledger, self._keys.register())
        return ledger

    def under_the_key_of_now(self, use: Callable[[], R]) -> R:
        """The result of `use` on the ledger, which is opened again as often as its key was changed meanwhile: nothing
        is wrong then, and nothing was written under the former key."""
        for _ in range(MOST_CHANGES):
            try:
                return use()
            except KeyChangedError:
                self.close()
        return use()

    def works(self) -> bool:
        """Whether the ledger can be used; asked at most once a second. A ledger that could not be used is opened again
        here, so that a service gets well by itself."""
        if time.monotonic() - self._checked >= CHECK_SECONDS:
            try:
                self.under_the_key_of_now(lambda: self.ledger.check_whole())
                self._works = True
            except Exception as error:
                if self._works or self._checked == -math.inf:  # told once, when it begins
                    note(error)
                self.close()
                self._works = False
            self._checked = time.monotonic()
        return self._works

    def close(self) -> None:
        with self._lock, contextlib.suppress(Exception):
            if self._ledger is not None:
                self._ledger.close()
            self._ledger = None

    # A batch --------------------------------------------------------------------------------------------------

    def must_be_limited(self, key: str | None) -> list[Subject]:
        """Whom the ledger must have a limit for when it releases to this key: the key itself, if it has a budget."""
        if key is None:
            return []
        registered = self._keys.named(key)
        if registered is None or registered.revoked is not None:
            raise ServiceError(
                401, RequestError("key-not-valid-any-more", "this key is not valid any more: nothing was released")
            )
        return [] if registered.budget is None else [Subject("key", key)]

    def options_of(self, key: str | None) -> KeyOptions:
        """The options that the operator has set for a key."""
        known = None if key is None else self._keys.named(key)
        return NO_OPTIONS if known is None else known.options

    def reserve(self, prepared: Prepared, orders: Sequence[Order]) -> list[Exception | None]:
        """One transaction for each payer; where that is refused, one for each of its orders."""
        refusals: dict[int, Exception] = {}
        groups: dict[tuple[str | None, str | None], list[Order]] = {}
        for order in orders:
            groups.setdefault((order.spender.key, order.spender.dataset), []).append(order)
        for group in groups.values():
            self._reserve_group(prepared, group, refusals)
        return [refusals.get(id(order)) for order in orders]

    def _reserve_group(self, prepared: Prepared, group: list[Order], refusals: dict[int, Exception]) -> None:
        try:
            self._reserve_together(prepared, group)
        except BudgetExceededError as error:
            if len(group) == 1:
                refusals[id(group[0])] = as_service_error(error)
                self._metrics.refusals.inc()
                return
            for order in group:
                self._reserve_group(prepared, [order], refusals)
        except Exception as error:
            note(error)
            if isinstance(error, LedgerError | WrongLedgerError):
                self.close()  # it may be whole again next time
            refusals.update({id(order): as_service_error(error) for order in group})

    def _reserve_together(self, prepared: Prepared, group: list[Order]) -> None:
        self.under_the_key_of_now(partial(self._reserve_once, prepared, group))

    def _reserve_once(self, prepared: Prepared, group: list[Order]) -> None:
        spender, ledger = group[0].spender, self.ledger
        limited = self.must_be_limited(spender.key)
        subjects = self._subjects(group)
        if subjects:
            reservation = ledger.reserve(
                prepared.unit_guarantee,
                dataset=spender.dataset or DATASET,
                subjects=subjects,
                token=secrets.token_hex(16),
                command=command_of(ledger, spender.key),
                must_be_limited=limited,
            )
            shared = SharedReservation(reservation, group)
            for order in group:
                order.reservation = shared
        else:
            ledger.check_limited(limited)
        left = self.remaining(spender.key)
        for order in group:
            order.remaining = left

    def _subjects(self, group: Sequence[Order]) -> list[Subject]:
        """Whom a group of orders is charged to; nobody, if all its texts are the public examples."""
        spender = group[0].spender
        everything, largest, subjects = 0, 0, []
        for order in group:
            texts: dict[str, int] = {}
            for text, units in charged_texts(order):
                texts[text] = texts.get(text, 0) + units * order.draws
            if not texts:
                continue
            everything += sum(texts.values())
            largest += max(texts.values())
            subjects += [text_subject(text, units) for text, units in texts.items()]
            if order.spender.user is not None:
                subjects.append(Subject("user", order.spender.user, sum(texts.values())))
        if not subjects:
            return []
        dataset = spender.dataset or DATASET
        return [Subject("key", spender.key or LOCAL, everything), Subject("dataset", dataset, largest), *subjects]

    # What is left ---------------------------------------------------------------------------------------------

    def remaining(self, key: str | None) -> float | None:
        """The budget that a key has left; None without a limit."""
        subject = Subject("key", key or LOCAL)
        limit = self.ledger.limit_of(subject)
        return None if limit is None else max(0.0, limit.epsilon - self.ledger.spent(subject).epsilon)

    def spent(self, prepared: Prepared, order: Order) -> dict[str, float | None]:
        """The cost of an answer for its key; no epsilon where none is proven for whole texts."""
        rate = prepared.rate
        if rate.measure != PLAIN and any(charged_texts(order)):
            return {"epsilon": None, "delta": None, "remaining": order.remaining}
        units = sum(units for _, units in charged_texts(order)) * order.draws
        charge = rate.of(units) if units else NOTHING  # a text without words releases nothing
        return {"epsilon": charge.epsilon + charge.added, "delta": charge.delta, "remaining": order.remaining}

    def overview(self, key: str | None) -> Overview:
        """`GET /v1/ledger`: limits, the key's own account, and its latest releases."""
        try:
            return self.under_the_key_of_now(partial(self._overview, key))
        except (LedgerError, WrongLedgerError):
            self.close()  # it may be whole again next time
            raise

    def _overview(self, key: str | None) -> Overview:
        ledger, subject = self.ledger, Subject("key", key or LOCAL)
        ledger.check_whole()
        spent, limit = ledger.spent(subject), ledger.limit_of(subject)
        commands = commands_of(ledger, key)
        own = ledger.releases(commands=commands, last=RELEASES)
        places = {"", DATASET, *ledger.datasets_of(subject)}  # names of others' data sets are not for this key
        return Overview(
            dataset_limits=[
                LimitFacts(kind=rule.kind, dataset=rule.dataset or None, epsilon=rule.epsilon, delta=rule.delta)
                for rule in ledger.limits()
                if not rule.name and rule.dataset in places
            ],
            key=KeyFacts(
                name=key or LOCAL,
                spent=KeySpent(
                    epsilon=spent.epsilon,
                    delta=spent.delta,
                    releases=spent.releases,
                    by_unit=[
                        UnitSpent(unit=unit, epsilon=part.epsilon, delta=part.delta, releases=part.releases)
                        for unit, part in sorted(ledger.spent_by_unit(subject, commands).items())
                    ],
                    # Never part of the sum: releases for which no plain epsilon of a whole text is proven.
                    apart=[ApartFacts(measure=account.measure, releases=account.releases) for account in spent.apart],
                ),
                limit=None if limit is None else KeyLimit(epsilon=limit.epsilon, delta=limit.delta),
            ),
            releases=[
                LedgerReleaseFacts(
                    id=record.id,
                    time=record.created,
                    dataset=record.dataset,
                    unit=record.unit,
                    mechanism=record.guarantee.mechanism,
                    epsilon=record.epsilon,
                    delta=record.delta,
                    state=record.state,
                )
                for record in own[::-1]
            ],
        )


def charged_texts(order: Order) -> Iterator[tuple[str, int]]:
    """The texts of an order that cost budget, with their units: all but the public examples of the page."""
    for text, units in zip(order.texts, order.units, strict=False):  # the first draw holds each text once
        if not is_public(text):
            yield text, units


def command_of(ledger: Ledger, key: str | None) -> str:
    """The command of the releases of a key in the ledger, where the key stands as a hash, like every subject."""
    return f"{COMMAND}: key {ledger.hash_of(Subject('key', key or LOCAL))}"


def commands_of(ledger: Ledger, key: str | None) -> list[str]:
    """All commands of a key; older releases have its name in place of the hash."""
    return [command_of(ledger, key), f"{COMMAND}: {key or LOCAL}"]


# For the command ----------------------------------------------------------------------------------------------------


def add_key(
    settings: ServicePlace, name: str, requests_per_minute: int, budget: KeyBudget | None, options: KeyOptions
) -> tuple[str, str | None]:
    """A new key, and what to tell if its ledger was made for it. The limit comes first, and nobody else can make a key
    of the same name meanwhile: no key is ever without its limit, or with that of another."""
    keys = Keys(settings.state)
    keys.check_new(name, requests_per_minute)
    with keys.exclusively():  # makes the folder, too
        with open_bound(settings.ledger_place, keys) as ledger:
            keys.check_new(name, requests_per_minute)
            if budget is not None:
                ledger.set_limit("key", epsilon=budget.epsilon, delta=budget.delta, name=name)
            making = ledger.making
        return keys.add(name, requests_per_minute, budget=budget, options=options), making


class KeyAccount(NamedTuple):
    """The budget that a key has spent, the same by the unit of its releases, and its limit."""

    spent: Spent
    by_unit: dict[str, Spent]
    limit: Limit | None


def key_accounts(settings: ServicePlace, names: Sequence[str]) -> dict[str, KeyAccount]:
    """The accounts of these keys."""
    with open_bound(settings.ledger_place, Keys(settings.state)) as ledger:
        return {
            name: KeyAccount(
                ledger.spent(Subject("key", name)),
                ledger.spent_by_unit(Subject("key", name), commands_of(ledger, name)),
                ledger.limit_of(Subject("key", name)),
            )
            for name in names
        }
