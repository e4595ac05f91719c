"""Mechanisms ready for requests: each is loaded once, shared by all requests that ask for the same, and forgotten when
it has not been used for a while.

What a request may ask for is narrower than what the command takes. An option that names a file, a model or a pipeline
would let a stranger read the server's disk or load code, so such an option takes its default, a built-in name, or a
value that the operator allowed (`allow`: vectors=FILE). A test seed is refused: the service only makes releases.
"""

from __future__ import annotations

import gc
import threading
import types
import typing
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Final

from tacit.account.ledger.charges import ChargeRate, rate_of
from tacit.card import Card, ReleaseFacts, plain_sentence
from tacit.catalog import build, find
from tacit.errors import BadParameterError, NoGuaranteeError, TacitError
from tacit.guarantee import Guarantee, Notion
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import Source
from tacit.parameters import Parameter, parameters_of
from tacit.serve.answers import Scalar
from tacit.serve.errors import ServiceError
from tacit.serve.written import WrittenFields
from tacit.text.tokens import is_punctuation, join, split

REMEMBERED_GUARANTEES: Final = 500

Pieces = list[tuple[str, str]]
Options = Mapping[str, Scalar]
"""Options of a mechanism, as a request gives them."""
PoolKey = tuple[str, float, bool, tuple[tuple[str, str, str], ...]]
"""A mechanism with its parameters: name, epsilon, tokens apart, and the options with their types."""


class Prepared:
    """One mechanism with its public data loaded, and what it promises. `rewrite` is called by one thread at a time."""

    def __init__(self, mechanism: Mechanism, joining: str | None) -> None:
        self.mechanism = mechanism
        self.is_word_level = mechanism.level == "word"
        self._joining = joining  # set when the mechanism gives tokens apart, which are then joined here
        self._promises: dict[tuple[int, int], WrittenFields] = {}

    @cached_property
    def unit_guarantee(self) -> Guarantee:
        promised = self.mechanism.guarantee(secure=True)
        if self._joining is None:
            return promised
        return replace(promised, parameters={**promised.parameters, "joining": self._joining})

    @cached_property
    def rate(self) -> ChargeRate:
        """How the cost in the ledger grows with the units."""
        return rate_of(self.unit_guarantee)

    def promises(self, draws: int, tokens: int) -> WrittenFields:
        """The guarantees of an answer, of one unit and of the longest text, over all draws together."""
        known = self._promises.get((draws, tokens))
        if known is None:
            if len(self._promises) >= REMEMBERED_GUARANTEES:
                self._promises.clear()
            known = self._promises[draws, tokens] = self._written(draws, tokens)
        return known

    def _written(self, draws: int, tokens: int) -> WrittenFields:
        unit = composed(self.unit_guarantee, draws)
        whole, note = document_promise(unit, tokens)
        return WrittenFields(
            {
                "guarantee": Card(unit).to_dict(),
                "document_guarantee": None if whole is None else Card(whole).to_dict(),
                "document_note": note,
                "plain": plain_sentence(unit if whole is None else whole),
            }
        )

    def card(self, draws: int, longest: int) -> Card:
        """The card of so many draws of texts that have at most `longest` units."""
        facts = ReleaseFacts(rows=1, documents=1, units=longest, longest_document=longest, longest_row=longest)
        return Card(composed(self.unit_guarantee, draws), facts)

    def units(self, texts: Sequence[str]) -> list[int]:
        """How many units each text releases; known before any noise is drawn."""
        return self.mechanism.count_units(texts)

    def rewrite(self, texts: Sequence[str], source: Source) -> Rewritten:
        """The private step."""
        return self.mechanism.rewrite_texts(texts, source)

    def pieces(self, text: str, released: str) -> tuple[str, Pieces]:
        """The released text, and each original token beside what it became."""
        after = released.split(" ") if released else []
        pairs = list(zip(self._tokens(text), after, strict=False))
        return join(after, self._joining or "natural"), pairs

    def _tokens(self, text: str) -> list[str]:
        tokens = split(text)
        if getattr(self.mechanism, "punctuation", None) == "drop":
            return [token for token in tokens if not is_punctuation(token)]
        return tokens


def composed(unit: Guarantee, draws: int) -> Guarantee:
    """Several draws of the same text add up."""
    return unit if draws == 1 else unit.then(*[unit] * (draws - 1))


def document_promise(unit: Guarantee, tokens: int) -> tuple[Guarantee | None, str | None]:
    """The plain guarantee of a whole text of so many tokens, or why there is none."""
    try:
        whole = unit if not unit.unit.is_part_of_text else unit.for_document(max(1, tokens))
        return (whole if whole.metric is None else whole.over_diameter()), None
    except NoGuaranteeError as error:
        return None, str(error)


# What requests may ask for ------------------------------------------------------------------------------------------


def checked_options(name: str, options: Options, allowed: Sequence[tuple[str, str]]) -> dict[str, Scalar]:
    """Options of a request: known, of the right type, and naming nothing on the server that was not allowed."""
    cls = known_mechanism(name)
    hints, known = typing.get_type_hints(cls), parameters_of(cls)
    defaults = {item.name: item.default for item in fields(cls) if item.init}
    checked: dict[str, Scalar] = {}
    for key, value in options.items():
        option = key.replace("-", "_")
        if option == "seed":
            raise BadParameterError(
                "seed-in-service", "the service draws secure noise only: leave out the option 'seed'"
            )
        if option == "epsilon":
            raise BadParameterError("epsilon-twice", "give epsilon beside the options, not among them")
        if option in defaults:
            _check_type(option, value, hints[option])
            if type(value) is int:
                _check_size(option, value, known[option], defaults[option], allowed)
            if isinstance(value, str):
                _check_name(option, value, known[option], defaults[option], allowed)
        checked[option] = value  # an unknown one is refused by `build`, with a close match
    return checked


def known_mechanism(name: str) -> type[Mechanism]:
    try:
        return find(name)
    except BadParameterError as error:
        raise ServiceError(404, error, "unknown_mechanism") from None


def _check_type(option: str, value: Scalar, hint: object) -> None:
    kinds = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in kinds:
        return
    accepted = tuple(kind for kind in (bool, int, float, str) if kind in kinds)
    if float in accepted and type(value) is int and abs(value) < 2**53:
        return
    if type(value) not in accepted:
        raise BadParameterError(
            "wrong-type-of-option",
            "the option '{name}' must be {accepted}: see /v1/mechanisms",
            name=option,
            accepted=_spoken(accepted),
        )


def _spoken(kinds: Sequence[type]) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return " or ".join(words[kind] for kind in kinds)


def _check_name(
    option: str, value: str, parameter: Parameter, default: object, allowed: Sequence[tuple[str, str]]
) -> None:
    # A text that is none of the choices names nothing on the server: the mechanism refuses it in its own words.
    if parameter.choices or parameter.service_takes(value) or value == default or (option, value) in allowed:
        return
    taken = sorted({*parameter.service_values, *(text for name, text in allowed if name == option)})
    hint = f"one of {', '.join(taken)}" if taken else "its default"
    raise BadParameterError(
        "value-not-allowed",
        "the option '{name}' takes {hint}: files and models of the server are used only if its operator allowed "
        "them with {option.allow}",
        name=option,
        hint=hint,
    )


def _check_size(
    option: str, value: int, parameter: Parameter, default: object, allowed: Sequence[tuple[str, str]]
) -> None:
    """Prepared mechanisms stay in memory, so nobody may choose how large they are beyond what the operator allows."""
    permitted = [int(text) for name, text in allowed if name == option and text.isdigit()]
    usual = value if parameter.service_most is None else parameter.service_most
    most = max([usual, *permitted, *([default] if type(default) is int else [])])
    if value > most:
        raise BadParameterError(
            "outside-range",
            "the option '{name}' is at most {most:,} here: ask the operator for more",
            name=option,
            most=most,
        )


# The pool -----------------------------------------------------------------------------------------------------------


class Pool:
    """Prepared mechanisms by name and parameters; the least recently used one is forgotten first."""

    def __init__(self, size: int, allowed: Sequence[tuple[str, str]] = ()) -> None:
        self._size = size
        self._allowed = allowed
        self._known: OrderedDict[PoolKey, Prepared] = OrderedDict()
        self._lock = threading.Lock()
        self._loading: dict[PoolKey, threading.Lock] = {}
        self.failures: dict[str, TacitError] = {}
        """Reasons why mechanisms could not be loaded at the last request, by mechanism."""

    def ready(self, name: str, epsilon: float, options: Options, *, tokens_apart: bool = False) -> Prepared | None:
        """The mechanism if it is in memory: asking costs microseconds."""
        key = _key(name, epsilon, options, tokens_apart)
        with self._lock:
            prepared = self._known.get(key)
            if prepared is not None:
                self._known.move_to_end(key)
            return prepared

    def get(self, name: str, epsilon: float, options: Options, *, tokens_apart: bool = False) -> Prepared:
        """The mechanism, loaded first if need be; callers who want the same one wait for one loading."""
        prepared = self.ready(name, epsilon, options, tokens_apart=tokens_apart)
        if prepared is not None:
            return prepared
        key = _key(name, epsilon, options, tokens_apart)
        mechanism = self.built(name, epsilon, options)  # invalid options are refused before anything is loaded
        with self._lock:
            loading = self._loading.setdefault(key, threading.Lock())
        with loading:
            prepared = self.ready(name, epsilon, options, tokens_apart=tokens_apart)
            if prepared is None:
                prepared = self._prepared(mechanism, tokens_apart)
                with self._lock:
                    self._known[key] = prepared
                    forgotten = len(self._known) > self._size
                    while len(self._known) > self._size:
                        self._known.popitem(last=False)
                if forgotten:
                    gc.collect()  # large tables that hang in circles would stay until the next turn of the collector
        with self._lock:
            self._loading.pop(key, None)
        return prepared

    def built(self, name: str, epsilon: float, options: Options) -> Mechanism:
        """A mechanism with these options, checked but not loaded."""
        return build(name, {**checked_options(name, options, self._allowed), "epsilon": epsilon})

    def sibling(self, name: str, epsilon: float, options: Options, loaded: Prepared) -> Mechanism:
        """The same mechanism at another epsilon, for a look: it shares the loaded vectors and is not kept."""
        mechanism = self.built(name, epsilon, options)
        table = getattr(loaded.mechanism, "table", None)
        return mechanism if table is None else mechanism.set_params(vectors=table, limit=None)

    def _prepared(self, mechanism: Mechanism, tokens_apart: bool) -> Prepared:
        joining = getattr(mechanism, "joining", None) if tokens_apart else None
        if joining is not None:
            mechanism.set_params(joining="spaces")
        prepared = Prepared(mechanism, joining)
        try:
            mechanism.prepare()
            if prepared.unit_guarantee.notion is Notion.NONE:
                raise NoGuaranteeError(
                    "release-promises-nothing",
                    "nothing is promised with these options: {reason}",
                    reason=prepared.unit_guarantee.void,
                )
        except (BadParameterError, NoGuaranteeError):
            raise
        except TacitError as error:  # a library, a model or a file is not there: nothing that a request can change
            self.failures[mechanism.name] = error
            raise ServiceError(503, error, "not_available") from None
        self.failures.pop(mechanism.name, None)
        return prepared


def _key(name: str, epsilon: float, options: Options, tokens_apart: bool) -> PoolKey:
    # The type tells 1, 1.0 and true apart, which are equal in Python and not the same option.
    settings = sorted((option.replace("-", "_"), type(value).__name__, str(value)) for option, value in options.items())
    return name, float(epsilon), tokens_apart, tuple(settings)
