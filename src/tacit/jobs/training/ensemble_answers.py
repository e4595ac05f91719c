"""Answers of an ensemble, from the options to the written file. Loads the libraries of neural models.

reserve   all tokens that the call may draw are charged to the ledger before the first is drawn
draw      from a key of this call alone, kept until the answers are written: a call that was stopped goes on with
          the noise it had, and is counted once
commit    when the answers and their card are in place
"""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from dataclasses import asdict, dataclass

from tacit.account.ledger import Ledger, Reservation, Subject, open_ledger
from tacit.atomic import write_file
from tacit.engines.charging import job_name
from tacit.errors import BadInputError, TacitWarning
from tacit.guarantee import Guarantee, VoidReason
from tacit.jobs.predict_ensemble import EnsembleAnswers, EnsembleAnswersConfig
from tacit.jobs.released_rows import card_of_rows, write_rows_with_card
from tacit.jobs.training.public_models import load_member
from tacit.mechanism import TEST_SEED_REASON
from tacit.noise.kept_key import check_private_folder, erase, keep_key, kept_key
from tacit.noise.source import KEY_BYTES, StreamKey
from tacit.progress import WorkProgress
from tacit.text.files import choose_columns, open_table, read_columns
from tacit.training.ensemble.asking import Ensemble, check_temperature
from tacit.training.ensemble.band import Band
from tacit.training.ensemble.folder import EnsembleFolder, EnsembleSettings
from tacit.training.ensemble.promise import TokenBudget, band_for
from tacit.training.origin import starting_weights

KEY, DRAFT = "noise.key", "drawn.jsonl"
PROMPT, ANSWER = "prompt", "text"
COMMAND = "tacit predict"
UP = DOWN = 0.5


@dataclass(frozen=True)
class TokenOrder:
    """The order of a call: its prompts, the tokens that it pays for, and the band around the public model."""

    prompts: tuple[str, ...]
    budget: TokenBudget
    length: int
    answers: int
    temperature: float
    prompt_length: int
    seed: int | None

    def identity(self) -> str:
        """A name for the call, the same for the same prompts and numbers."""
        band = self.budget.band
        parts = [
            self.prompts, self.budget.tokens, self.budget.delta, self.budget.adjacency.value, self.length, self.answers,
            self.temperature, self.prompt_length, self.seed, band.shards, band.up, band.down, band.way,
        ]  # fmt: skip
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def released_answers(config: EnsembleAnswersConfig, progress: WorkProgress) -> EnsembleAnswers:
    """The answers of a configuration, written with their card and paid for."""
    check_temperature(config.temperature)
    folder = EnsembleFolder(config.model)
    settings = folder.settings()
    order = order_of(config, settings)
    ensemble = opened(folder)
    prompts = [ensemble.prompt(text, order.length, order.prompt_length) for text in order.prompts]
    promise = promise_of(config, settings, order)
    assert config.ledger is not None
    with open_ledger(config.ledger) as ledger, Unfinished(folder, order, resume=config.resume) as unfinished:
        if ledger.making is not None:
            warnings.warn(TacitWarning(ledger.making), stacklevel=4)
        dataset = config.dataset or settings.dataset
        reserved = _reserved(ledger, promise, dataset, unfinished)
        drawn = _drawn(ensemble, order, prompts, unfinished, progress)
        texts = [ensemble.public.text(ids) for _, ids in drawn.answers]
        columns = {PROMPT: [order.prompts[number] for number, _ in drawn.answers], ANSWER: texts}
        card = card_of_rows(config, promise, texts, command=COMMAND)
        write_rows_with_card(config.output, columns, card)
        reserved.commit()
        unfinished.remove()
        spent = str(ledger.spent(Subject("dataset", dataset)))
    unanswered = len(prompts) * order.answers - len(texts)
    return EnsembleAnswers(columns, ANSWER, card, config.output, drawn.tokens, unanswered, spent)


def opened(folder: EnsembleFolder) -> Ensemble:
    """A finished ensemble with its public model, whose card is read again."""
    return Ensemble(folder, load_member(folder.settings().model))


def order_of(config: EnsembleAnswersConfig, settings: EnsembleSettings) -> TokenOrder:
    """The order of a configuration, with its band."""
    prompts = prompts_of(config)
    tokens = config.tokens or len(prompts) * config.answers * config.length
    band = Band(settings.shards, config.up or UP, config.down or DOWN, config.way)
    if config.epsilon is not None:
        band = band_for(
            config.epsilon, settings.shards, tokens=tokens, delta=config.delta, adjacency=config.adjacency, like=band
        )
    budget = TokenBudget(band, tokens, config.delta, settings.unit_of_privacy, config.adjacency)
    return TokenOrder(
        prompts, budget, config.length, config.answers, config.temperature, config.prompt_length, config.seed
    )


def prompts_of(config: EnsembleAnswersConfig) -> tuple[str, ...]:
    """The prompts of a file or of data in memory."""
    with open_table(config.data, config.format) as table:
        chosen = () if config.column is None else (config.column,)
        (column, *_) = choose_columns(table.columns, chosen, ()).texts
    return tuple(read_columns(config.data, [column], format=config.format)[column])


def promise_of(config: EnsembleAnswersConfig, settings: EnsembleSettings, order: TokenOrder) -> Guarantee:
    """The guarantee of all tokens, with what the public model has read."""
    own = order.budget.guarantee()
    promise = starting_weights(settings.model).with_training(own, settings.model)
    return promise if config.seed is None else promise.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)


def _reserved(ledger: Ledger, promise: Guarantee, dataset: str, unfinished: Unfinished) -> Reservation:
    try:
        return ledger.reserve(
            promise,
            dataset=dataset,
            subjects=[Subject("dataset", dataset, 1)],
            token=job_name(unfinished.key),
            command=COMMAND,
        )
    except BaseException:
        if not unfinished.went_on:
            unfinished.remove()  # nothing was drawn with its key
        raise


@dataclass
class _Drawn:
    """Answers by the numbers of their prompts, and how many tokens were drawn for them."""

    answers: list[tuple[int, list[int]]]
    tokens: int


def _drawn(
    ensemble: Ensemble, order: TokenOrder, prompts: list[list[int]], unfinished: Unfinished, progress: WorkProgress
) -> _Drawn:
    """All answers that the paid tokens are enough for, in order; those of a stopped call are read, not drawn again."""
    paid = order.budget.tokens
    drawn = _Drawn([], 0)
    identity = order.identity().encode()
    for place in range(len(prompts) * order.answers):
        left = paid - drawn.tokens
        if left == 0:
            break
        number = place // order.answers
        known = unfinished.answer(place)
        if known is None:
            before, used = drawn.tokens, [0]

            def counted(count: int, before: int = before, used: list[int] = used) -> None:
                used[0] = count
                progress("drawing tokens", before + count, paid)

            ids = ensemble.answer(
                prompts[number],
                band=order.budget.band,
                tokens=min(order.length, left),
                temperature=order.temperature,
                source=unfinished.key.stream(place, identity),
                drawn=counted,
            )
            known = unfinished.keep(place, ids, used[0])
        drawn.answers.append((number, known.ids))
        drawn.tokens += known.tokens
    progress("drawing tokens", paid, paid)
    return drawn


@dataclass(frozen=True)
class _Kept:
    """The tokens of an answer, and how many were drawn for it: one more where a token has ended it."""

    ids: list[int]
    tokens: int


class Unfinished:
    """The private folder of a call that is not finished: the key of its noise, and the answers so far."""

    def __init__(self, folder: EnsembleFolder, order: TokenOrder, *, resume: bool) -> None:
        self._folder = folder.private / f"asking-{order.identity()}"
        self._resume = resume
        self._seed = order.seed
        self._answers: list[_Kept] = []
        self.went_on = False
        self.key: StreamKey

    def __enter__(self) -> Unfinished:
        if self._folder.exists():
            if not self._resume:
                raise BadInputError(
                    "unfinished-answers",
                    "these prompts were being answered and the run was stopped: go on with {option.resume}, or remove "
                    "{folder}, whose tokens stay paid",
                    folder=self._folder,
                )
            check_private_folder(self._folder)
            self.key = StreamKey(kept_key(self._folder / KEY, KEY_BYTES), secure=self._seed is None)
            self.went_on = True
            self._read()
            return self
        self._folder.mkdir(mode=0o700)
        self.key = StreamKey.from_os() if self._seed is None else StreamKey.from_test_seed(self._seed)
        keep_key(self._folder / KEY, self.key.key)
        return self

    def __exit__(self, *_: object) -> None:
        return

    def _read(self) -> None:
        if not (self._folder / DRAFT).exists():
            return
        for line in (self._folder / DRAFT).read_text(encoding="utf-8").splitlines():
            try:
                content = json.loads(line)
            except ValueError:
                break  # the line that was being written when the run stopped
            self._answers.append(_Kept(content["ids"], content["tokens"]))
        whole = "".join(json.dumps(asdict(kept)) + "\n" for kept in self._answers)
        write_file(self._folder / DRAFT, whole.encode(), private=True)

    def answer(self, place: int) -> _Kept | None:
        """An answer that was drawn already."""
        return self._answers[place] if place < len(self._answers) else None

    def keep(self, place: int, ids: list[int], tokens: int) -> _Kept:
        kept = _Kept(ids, tokens)
        del self._answers[place:]
        self._answers.append(kept)
        with (self._folder / DRAFT).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(kept)) + "\n")
        return kept

    def remove(self) -> None:
        """The answers are out, or nothing was drawn: the key is destroyed."""
        erase(self._folder / KEY)
        shutil.rmtree(self._folder)
