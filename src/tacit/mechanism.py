"""The base of all rewriting mechanisms: an estimator with the habits of scikit-learn, and a guarantee.

A mechanism is a dataclass; its fields are its parameters. It learns only from public data, so `fit` ignores the texts
it is given: fitting on private text would be a release. `rewrite` returns the texts together with the guarantee,
`transform` returns the texts in the container they came in (list, numpy array, pandas Series, Arrow array), for use
in a `Pipeline`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, cast

from tacit.card import Card, ReleaseFacts
from tacit.card_words import promise_text
from tacit.checks import Check
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Guarantee, Unit, check_epsilon
from tacit.needs import Ability
from tacit.noise.source import Source, new_source
from tacit.parameters import EpsilonRange, parameters_of
from tacit.reading import Reading

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from tacit.account.shuffling import TwoWeights
    from tacit.arrays import Floats32

Column = TypeVar("Column")
"""One text, or texts in a container of any library."""

Releases = Literal["text", "vector", "vectors"]

TEST_SEED_REASON = "it was drawn with a test seed, and whoever knows the seed can undo the noise"


@dataclass(frozen=True)
class Rewritten:
    """Rewritten texts, how many units (tokens at the word level) each of them released, and the released labels where
    they are drawn together with the texts. A mechanism that releases vectors has those in place of the texts: for each
    text one (dimension,), or one for each of its tokens (tokens, dimension)."""

    texts: list[str]
    units: list[int]
    labels: list[str] | None = None
    vectors: list[Floats32] | None = None

    @property
    def values(self) -> Sequence[object]:
        """The values of the output, one for each text."""
        return self.texts if self.vectors is None else [plain_numbers(vector) for vector in self.vectors]


def plain_numbers(vector: Floats32) -> list[object]:
    """A vector or several as lists of numbers, each the shortest decimal that is the same number in single
    precision."""
    if vector.ndim > 1:
        return [plain_numbers(row) for row in vector]
    return [float(number) for number in vector.astype(str)]


@dataclass(frozen=True)
class Release:
    """Rewritten texts, which may be shared, and the guarantee about them. A notebook shows its card."""

    texts: list[str]
    guarantee: Guarantee
    units: list[int]

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"<Release of {len(self):,} {'text' if len(self) == 1 else 'texts'}: {promise_text(self.guarantee)}>"

    def _repr_html_(self) -> str:
        return self.card()._repr_html_()

    def card(self) -> Card:
        """The privacy card, with what the guarantee adds up to over the longest of these texts."""
        longest = max(self.units, default=0)
        return Card(
            self.guarantee,
            ReleaseFacts(
                rows=len(self),
                documents=len(self),
                units=sum(self.units),
                longest_document=longest,
                longest_row=longest,
            ),
        )

    def for_documents(self) -> Guarantee:
        """The guarantee of the longest text in this release, as a whole document."""
        if self.guarantee.unit is Unit.DOCUMENT:
            return self.guarantee
        return self.guarantee.for_document(max([1, *self.units]))


@dataclass(kw_only=True, eq=False)
class Mechanism(ABC):
    """Base of all rewriting mechanisms. Subclasses set the class variables and write `prepare`, `guarantee` and
    `rewrite_texts`; setting `name` registers them."""

    epsilon: float
    seed: int | None = None

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    level: ClassVar[str]
    notion: ClassVar[str]
    unit: ClassVar[str]
    model_needed: ClassVar[str] = "none"
    """The model it works with, in a few words; the parameters of the mechanism choose another one."""
    abilities: ClassVar[tuple[Ability, ...]] = ()
    """What must be installed whatever the parameters are; a parameter may say what its values need."""
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(8.0, 0.5, 50.0)
    """Where a slider stands, and its ends."""
    every_epsilon: ClassVar[bool] = True
    """Whether it is defined for every positive epsilon, so that it can be drawn as a curve over epsilon."""
    block_characters: ClassVar[int] = 250_000
    joint_labels: ClassVar[bool] = False
    """Whether it can release a text and its label by one choice (`rewrite_labeled`)."""
    releases: ClassVar[Releases] = "text"
    """What a text becomes: another text, one vector, or a vector for each of its tokens."""
    registry: ClassVar[dict[str, type[Mechanism]]] = {}
    """All mechanisms by name; those that release vectors have a registry of their own."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            _refuse_taken(cls, cls.registry.get(cls.name))
            cls.registry[cls.name] = cls

    def __post_init__(self) -> None:
        self.check_parameters()
        self._is_complete = True

    # Parameters -----------------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse parameters that are not allowed. A mechanism with rules beyond choices and ranges
        adds them here, and calls this first. Nothing may be worked out or kept: that is for `cached_property`."""
        check_epsilon(self.epsilon)
        for name, known in parameters_of(type(self)).items():
            known.check(name, getattr(self, name))

    def __setattr__(self, name: str, value: object) -> None:
        """Setting a parameter is `set_params`. Anything else on a mechanism is derived, and forgotten with the next
        change of a parameter."""
        if "_is_complete" in vars(self) and name in parameters_of(type(self)):
            self.set_params(**{name: value})
        else:
            object.__setattr__(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as in scikit-learn."""
        own = vars(self)
        return {name: own[name] for name in parameters_of(type(self)) if name in own}

    def set_params(self, **values: object) -> Self:
        """Change parameters, all or none of them: with one that is refused, everything stays as it was. Whatever was
        worked out from the old ones is forgotten, so parameters and derived numbers never disagree."""
        known = self.get_params()
        for name in values:
            if name not in known:
                raise BadParameterError(
                    "unknown-parameter",
                    "{mechanism} has no parameter '{name}': it has {known}",
                    mechanism=self.name,
                    name=name,
                    known=", ".join(sorted(known)),
                )
        before = vars(self).copy()
        self.__setstate__({**known, **values})
        try:
            self.check_parameters()
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Parameters only: what was worked out can hold words of the texts that were rewritten."""
        return self.get_params()

    def __setstate__(self, parameters: dict[str, object]) -> None:
        vars(self).clear()
        vars(self).update(parameters, _is_complete=True)

    @classmethod
    def abilities_for(cls, options: Mapping[str, object]) -> list[Ability]:
        """The abilities that must be installed for these options, as a command line or a request gives them."""
        needed = list(cls.abilities)
        for item in fields(cls):
            known = parameters_of(cls).get(item.name)
            if known is not None and known.needs is not None:
                value = options.get(item.name, None if item.default is MISSING else item.default)
                needed += known.needs("" if value is None else str(value))
        return needed

    # To write in a mechanism ----------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self) -> None:
        """Load the public data. Called before the first text; calling it again does nothing."""

    @abstractmethod
    def guarantee(self, *, secure: bool | None = None) -> Guarantee:
        """The guarantee of one unit. A run with a test seed is not secure, and its guarantee is void."""

    @abstractmethod
    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        """The only private step: rewrite each text with fresh noise from `source`."""

    def rewrite_labeled(self, texts: Sequence[str], labels: Sequence[str], source: Source) -> Rewritten:
        """The same for texts and their labels where `joint_labels`: both by one choice, so that one epsilon covers the
        record. The labels that exist are a parameter `labels` of the mechanism."""
        raise NoGuaranteeError(
            "labels-not-covered",
            "{name} does not cover labels: give them a budget of their own with {option.label_epsilon[E]}",
            name=self.name,
        )

    def two_weights(self) -> TwoWeights | None:
        """The law of a release where it is one choice with two weights, for the bound of shuffled rows."""
        return None

    def count_units(self, texts: Sequence[str]) -> list[int]:
        """How many units `rewrite_texts` will release for each text, told before any noise is drawn."""
        raise NoGuaranteeError(
            "units-not-known-beforehand",
            "{name} does not tell beforehand how many units a text has, so no ledger can charge it",
            name=self.name,
        )

    def reading(self, texts: Sequence[str]) -> Reading:
        """How much of these texts is known and read, for the eyes of their holder only (`tacit.reading`)."""
        return Reading(documents=len(texts))

    def checks(self) -> tuple[Check, ...]:
        """How the audit can check the promise, once the mechanism is prepared; empty if it cannot."""
        return ()

    # For users ------------------------------------------------------------------------------------------------

    def rewrite(self, texts: str | Iterable[str]) -> Release:
        """Rewrite texts; every call draws new noise, so rewriting the same text twice spends the budget twice."""
        items = as_texts(texts)
        source = new_source(self.seed)
        self.prepare()
        result = self.rewrite_texts(items, source)
        return Release(result.texts, self.guarantee(secure=source.secure), result.units)

    def fit(self, X: object = None, y: object = None) -> Self:
        """Load the public data. `X` is ignored on purpose: a mechanism never learns from the private text."""
        self.prepare()
        return self

    def transform(self, X: Column) -> Column:
        """Rewritten texts in the same kind of container."""
        return cast("Column", _like(X, self.rewrite(as_texts(X)).texts))

    def fit_transform(self, X: Column, y: object = None) -> Column:
        return self.fit(X, y).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(string=True, one_d_array=True, two_d_array=False),
            requires_fit=False,
        )


def _refuse_taken(cls: type[Mechanism], other: type[Mechanism] | None) -> None:
    """A plug-in may not take the place of another mechanism. A module that is imported again defines its own anew."""
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise BadParameterError(
            "name-taken",
            "the mechanism '{name}' of {module} has the name of one of {other}: give it another name",
            name=cls.name,
            module=cls.__module__,
            other=other.__module__,
        )


def as_texts(texts: object) -> list[str]:
    """One text or any column of texts as a list."""
    if isinstance(texts, str):
        return [texts]
    if hasattr(texts, "to_pylist"):
        texts = texts.to_pylist()
    elif hasattr(texts, "ndim") and texts.ndim != 1:
        raise BadInputError(
            "table-instead-of-texts",
            "give one column of texts, not a table: select the column first, for example frame['text']",
        )
    items = list(cast("Iterable[str]", texts))
    for position, item in enumerate(items):
        if not isinstance(item, str):
            raise BadInputError(
                "not-a-text",
                "item {position} is a {given}, not a text: replace missing values first, for example with an empty "
                "string",
                position=position,
                given=type(item).__name__,
            )
    return items


def _like(container: object, texts: list[str]) -> object:
    if isinstance(container, str):
        return texts[0]
    # A container can only be of a library that has been imported already.
    for library, convert in (("pandas", _pandas), ("pyarrow", _arrow), ("numpy", _numpy)):
        module = sys.modules.get(library)
        if module is not None and (result := convert(module, container, texts)) is not None:
            return result
    return texts


def _pandas(pandas: ModuleType, container: object, texts: list[str]) -> object:
    if isinstance(container, pandas.Series):
        kind = None if isinstance(container.dtype, pandas.CategoricalDtype) else container.dtype
        return pandas.Series(texts, index=container.index, name=container.name, dtype=kind)
    return None


def _arrow(pyarrow: ModuleType, container: object, texts: list[str]) -> object:
    if isinstance(container, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([pyarrow.array(texts, type=container.type)])
    if isinstance(container, pyarrow.Array):
        return pyarrow.array(texts, type=container.type)
    return None


def _numpy(numpy: ModuleType, container: object, texts: list[str]) -> object:
    return numpy.array(texts, dtype=object) if isinstance(container, numpy.ndarray) else None
