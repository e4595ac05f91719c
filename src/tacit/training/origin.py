"""Where weights, words and text of a run come from, and what that does to its promise.

A guarantee speaks of the records that a run reads. Starting weights may have read others, or the same ones before:

* weights from elsewhere are assumed to be trained on public text; the card says so;
* weights that Tacit trained on *declared public* text, from public weights, are public;
* weights with a private card keep their promise to their own records: a record in both data sets has both budgets,
  which add up, and the card says so;
* weights that Tacit trained without privacy and without such a declaration void the guarantee of whatever is made from
  them: their records would be unprotected, and nobody could see it.

More training on public text washes nothing: private weights keep their card (the training is post-processing), and
weights without a guarantee stay without one.

A vocabulary that was learned privately from the same records is paid for by its own budget, which is added. Text that a
mechanism has released already may be trained on without noise: that is post-processing, and its card is the promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.errors import BadInputError
from tacit.guarantee import Exclusion, ExclusionKind, Guarantee, Provenance, ProvenanceKind, VoidReason
from tacit.lineage import (
    CARD,
    SETTINGS,
    VOCABULARY_CARD,
    Lineage,
    described,
    lineage_of,
    own_budget,
    read_card,
)
from tacit.plugins import source_digest
from tacit.text.digest import output_digest

__all__ = ["CARD", "SETTINGS", "VOCABULARY_CARD", "Origin", "released_text", "starting_weights", "with_tokenizer"]


@dataclass(frozen=True)
class Origin:
    """start: the card of the starting weights; start_public: the public text they were trained on, if it was declared;
    vocabulary: the card of a vocabulary learned from the same records; public: the name of the training text, declared
    public; released: the card of the training text, if a mechanism released it; from_scratch: random weights;
    tokenizer: where the word pieces come from, if they are not those of the starting weights; helpers: whatever
    else the steps read."""

    start: Guarantee | None = None
    start_public: str | None = None
    vocabulary: Guarantee | None = None
    public: str | None = None
    released: Guarantee | None = None
    from_scratch: bool = False
    tokenizer: Provenance | None = None
    helpers: tuple[Provenance, ...] = ()

    def with_training(self, own: Guarantee, model: str) -> Guarantee:
        """The guarantee of the trained weights."""
        promise = self._of_text_and_start(own, model)
        promise = replace(promise, provenance=(*promise.provenance, *self.helpers))
        if self.tokenizer is None:
            return promise
        promise = replace(promise, provenance=(*promise.provenance, self.tokenizer))
        if self.tokenizer.paid_by is None:
            return promise
        return promise.also_not_covered(
            f"what the tokenizer learned from its own records ({self.tokenizer.paid_by}); a {promise.unit.value} in "
            "both data sets has both budgets added up"
        )

    def _of_text_and_start(self, own: Guarantee, model: str) -> Guarantee:
        if self.public is not None and not own.is_private and not self._start_is_void:
            return self._on_public_text(own, model)
        promise = self._of_data(own)
        if self.vocabulary is not None and promise.is_private:
            promise = promise.then(self.vocabulary)
        return self._of_start(promise, model)

    @property
    def _start_is_private(self) -> bool:
        return self.start is not None and self.start.is_private

    @property
    def _start_is_void(self) -> bool:
        return self.start is not None and not self.start.is_private and self.start_public is None

    def _on_public_text(self, own: Guarantee, model: str) -> Guarantee:
        """The guarantee that weights and vocabulary had before, to which public text adds nothing."""
        before = [g for g in (self.start if self._start_is_private else None, self.vocabulary) if g is not None]
        if not before:
            void = f"it was trained without noise, on text that was declared public: {self.public}"
            return self._of_start(replace(own, void=void, void_reason=VoidReason.DECLARED_PUBLIC), model)
        promise = before[0].then(*before[1:]) if len(before) > 1 else before[0]
        return replace(
            promise,
            parameters={**promise.parameters, **own.parameters},
            history=(*promise.history, f"{own.mechanism} on text declared public: post-processing"),
            provenance=(
                *promise.provenance,
                Provenance("text", f"{self.public}, declared public", kind=ProvenanceKind.DECLARED_PUBLIC),
            ),
        )

    def _of_data(self, own: Guarantee) -> Guarantee:
        if self.released is not None:
            return replace(
                self.released,
                parameters={**self.released.parameters, **own.parameters},
                history=(*self.released.history, f"{own.mechanism} on the released text: post-processing"),
                provenance=(*self.released.provenance, *own.provenance),
            )
        return own

    def _of_start(self, promise: Guarantee, model: str) -> Guarantee:
        if self._start_is_void:
            assert self.start is not None
            sentence = f"it started from weights without a guarantee ({model}: {self.start.void})"
            return promise.voided(sentence, VoidReason.STARTING_WEIGHTS)
        if self._start_is_private:
            assert self.start is not None
            return _after_private_weights(promise, self.start, model)
        return replace(promise, provenance=(*promise.provenance, self._public_start(model)))

    def _public_start(self, model: str) -> Provenance:
        if self.from_scratch:
            return Provenance("starting weights", "random", kind=ProvenanceKind.RANDOM)
        if self.start_public is not None:
            source = f"{model}, trained on {self.start_public}, which was declared public"
            return Provenance("pre-trained weights", source, kind=ProvenanceKind.DECLARED_PUBLIC)
        return Provenance("pre-trained weights", f"{model}, assumed to be trained on public text")

    def settings(self) -> dict[str, object]:
        """`public` only if everything that the weights have read is: their starting weights and their words too."""
        words_are_private = self.vocabulary is not None or (self.tokenizer is not None and not self.tokenizer.public)
        if self.public is None or self._start_is_void or self._start_is_private or words_are_private:
            return {}
        return {"public": " and ".join(dict.fromkeys(text for text in (self.start_public, self.public) if text))}


def _after_private_weights(promise: Guarantee, start: Guarantee, model: str) -> Guarantee:
    own = described(start)
    earlier = [line for line in start.not_covered if Exclusion.kind_of(line) is ExclusionKind.EARLIER_WEIGHTS]
    now = (
        f"what the starting weights learned from their own records ({own}); a {promise.unit.value} in both data sets "
        "has both budgets added up"
    )
    return replace(
        promise,
        provenance=(
            *promise.provenance,
            Provenance(
                "pre-trained weights",
                f"{model}, trained privately by Tacit",
                public=False,
                paid_by=own_budget(start),
            ),
        ),
    ).also_not_covered(*earlier, Exclusion(now, ExclusionKind.EARLIER_WEIGHTS))


def with_code_of_plugin(promise: Guarantee, name: str, task: type) -> Guarantee:
    """A promise with what it assumes of a task that does not come with Tacit."""
    digest = source_digest(task)
    if digest is None or not promise.is_private:
        return promise
    return promise.also_assuming(
        f"the task '{name}' is code of a plug-in ({task.__module__}, hash {digest}): that it "
        "reads each record by itself, and takes nothing of the records into the model but by its loss and the "
        "names of the labels, was not checked"
    )


def starting_weights(folder: str | Path) -> Origin:
    """The origin of a model folder as its card declares it; empty if it is a hub name or was not made by Tacit."""
    lineage = lineage_of(folder)
    return Origin(start=lineage.promise, start_public=lineage.public, vocabulary=lineage.vocabulary)


def with_tokenizer(origin: Origin, folder: str | Path) -> Origin:
    """The same with the word pieces of another folder: a vocabulary that was learned privately brings its card, and
    pieces from elsewhere are assumed to be public. A folder without a guarantee is refused."""
    lineage = lineage_of(folder)
    if lineage.vocabulary is not None:
        return replace(origin, vocabulary=lineage.vocabulary)
    known = lineage.provenance("tokenizer", f"the tokenizer of {Path(folder).name}")
    if lineage == Lineage():
        known = replace(known, source=f"{known.source}, assumed to be made from public text")
    return replace(origin, tokenizer=known)


def released_text(path: Path, data: str, rows: int, read: Sequence[str]) -> Guarantee:
    """The promise of a released file, from its card: `read` are the columns whose text the model learns.
    The card must be that of this very file, and they must have passed the mechanism; columns that were kept are named
    on the card already."""
    if not path.is_file():
        raise BadInputError(
            "no-such-card",
            "there is no card {card}: give the one that 'tacit rewrite' wrote beside the released file",
            card=path,
        )
    card = read_card(path)
    if not card.guarantee.is_private:
        raise BadInputError(
            "release-promises-nothing",
            "the card {card} promises nothing ({reason}): train with an epsilon instead",
            card=path,
            reason=card.guarantee.void,
        )
    facts = card.facts
    if facts is None or facts.output != Path(data).name or facts.rows != rows:
        described = "no file" if facts is None else f"{facts.output} with {facts.rows:,} rows"
        raise BadInputError(
            "card-of-another-file",
            "the card {card} speaks of {described}, not of {name} with {rows:,}: give the card that was written "
            "with this file, or train with an epsilon",
            card=path,
            described=described,
            name=Path(data).name,
            rows=rows,
        )
    _check_same_file(path, data, facts.digest)
    for column in read:
        if column not in facts.columns:
            raise BadInputError(
                "column-not-rewritten",
                "by its card the column '{column}' of {data} was not rewritten, so nothing protects it: read one of "
                "{columns}, or train with an epsilon",
                column=column,
                data=data,
                columns=", ".join(facts.columns),
            )
    return card.guarantee


def _check_same_file(path: Path, data: str, digest: str) -> None:
    """A name and a number of rows are easily the same for two files: one of them may never have been rewritten."""
    if not digest:
        raise BadInputError(
            "card-without-digest",
            "the card {card} does not say what {name} holds (an earlier Tacit wrote it), so it may be the card of "
            "another text: rewrite the text again, or train with an epsilon",
            card=path,
            name=Path(data).name,
        )
    if output_digest(data) != digest:
        raise BadInputError(
            "card-of-another-file",
            "{data} is not the file that the card {card} was written with, or it was changed since: give the file "
            "as it was released, or train with an epsilon",
            data=data,
            card=path,
        )
