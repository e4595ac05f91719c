"""The ledger that counts for a state folder, and no other.

A limit that is not there refuses nothing, so a ledger that was lost, emptied or swapped looks like one in which nobody
ever spent anything. Therefore the state folder remembers, in `keys.json`, the id of the ledger it was first used with.
From then on a ledger is never made in its place, and another one is refused: nothing is released until the right one is
back, or the operator says that another one shall count (`tacit serve keys rebind`).
"""

from __future__ import annotations

import contextlib
import logging

from tacit.account.ledger import Ledger, LedgerError, MissingLedgerError, Subject, open_ledger
from tacit.errors import BadParameterError
from tacit.serve.errors import WrongLedgerError
from tacit.serve.keys import KeyBudget, Keys, Register

log = logging.getLogger("tacit.serve")

LOCAL = "local"
"""The name under which a service without keys writes down what it releases."""
WAY_OUT = "bring it back ('tacit ledger restore'), or let another one count with 'tacit serve keys rebind'"


def open_bound(place: str, keys: Keys) -> Ledger:
    """The ledger of the state folder whose keys these are, open. It is made only if the folder never had one."""
    register = keys.register()
    may_make = register.ledger is None and not register.is_from_before
    try:
        ledger = open_ledger(place, create=may_make)
    except MissingLedgerError as error:
        raise WrongLedgerError(
            "ledger-of-service-gone",
            "{place} is gone, in which the budgets of this service are counted: {advice}",
            place=error.place,
            advice=WAY_OUT,
        ) from None
    except BadParameterError as error:  # the key in the environment: nothing that a request can change
        raise LedgerError.of(error) from None
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(ledger.close)
        if register.ledger is None:
            register = _bind(ledger, keys)
        check_bound(ledger, register)
        on_failure.pop_all()
    return ledger


def check_bound(ledger: Ledger, register: Register) -> None:
    """Raise unless this is the ledger that counts."""
    if ledger.id != register.ledger:
        raise WrongLedgerError(
            "another-ledger-than-bound",
            "{ledger} has the id {id}, and the budgets of this service are counted in the ledger with the id "
            "{bound}: {advice}",
            ledger=ledger.name,
            id=ledger.id,
            bound=register.ledger,
            advice=WAY_OUT,
        )


def rebind(place: str, keys: Keys) -> tuple[Ledger, list[str]]:
    """Let another ledger count from now on. A key with a budget keeps the limit it has there; one without any there
    gets its whole budget anew. Returns the open ledger, and the names of those who begin anew."""
    anew: list[str] = []
    with keys.exclusively():
        ledger = open_ledger(place)
        budgets = named_limits(ledger, keys.register())
        for key in keys.register().keys:
            if key.budget is not None and key.name not in budgets:
                budget = key.budget
                ledger.set_limit("key", epsilon=budget.epsilon, delta=budget.delta, name=key.name)
                anew.append(key.name)
        keys.bind(ledger.id, budgets)
    return ledger, anew


def _bind(ledger: Ledger, keys: Keys) -> Register:
    """Remember the first ledger of a state folder, and which keys have a budget in it."""
    writer = keys.for_writing()
    with writer.exclusively():
        register = writer.register()
        if register.ledger is None:
            _check_no_keys_lost(ledger, register)
            writer.bind(ledger.id, named_limits(ledger, register))
    keys.forget()
    return writer.register()


def _check_no_keys_lost(ledger: Ledger, register: Register) -> None:
    """A ledger that has charged keys, in a folder without any, is one whose `keys.json` was lost: without it everybody
    on this machine would be let in."""
    if not register.keys and ledger.knows_others("key", [LOCAL]):
        raise WrongLedgerError(
            "keys-of-service-gone",
            "{ledger} has budgets of keys, and there is no 'keys.json' in the state folder: bring it back, or, if "
            "this service shall have no keys, say so with 'tacit serve keys rebind'",
            ledger=ledger.name,
        )


def named_limits(ledger: Ledger, register: Register) -> dict[str, KeyBudget | None]:
    """The budgets of keys that have a limit of their own in a ledger."""
    limits: dict[str, KeyBudget | None] = {}
    for key in register.keys:
        limit = ledger.limit_of(Subject("key", key.name))
        if limit is not None and limit.name:
            limits[key.name] = KeyBudget(limit.epsilon, limit.delta)
    return limits
