"""`rewrite`: release the texts of a data set with a mechanism.

The noise of a block of texts is a function of the step's key, the block's number and its texts (`engines.blocks`). The
key comes from the operating system, lies in the step's folder (readable by its owner only) until the step is finished,
and is then destroyed. So a step that was killed and is run again releases exactly what it would have released, and no
text gets two draws. `seed` numbers independent releases of the same texts; it is not what the noise is made from. What
several releases of one text reveal adds up, and each card says so.

The mechanism "none" copies the texts: the ceiling of all scores. It has no card.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from tacit import catalog
from tacit.atomic import write_file
from tacit.card import Card, ReleaseFacts
from tacit.engines.blocks import content_digest, fingerprint, rewrite_block
from tacit.engines.local import longest_sum
from tacit.errors import BadInputError
from tacit.evaluation.scores import Interval, t_interval
from tacit.experiments.config import Parameters
from tacit.experiments.conversion import calibrated, check_length, fixed_length, of_document
from tacit.experiments.inputs import check_part, check_texts, data_in
from tacit.experiments.raw import parts_of, read_json, read_lines, read_part, write_json, write_lines
from tacit.experiments.steps import KEY_FILE, OF_THE_CARD, Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.pretrain import STAGES, Pretrain
from tacit.guarantee import Guarantee
from tacit.mechanism import Mechanism
from tacit.noise.kept_key import kept_key
from tacit.noise.source import KEY_BYTES, StreamKey
from tacit.plugins import source_digest
from tacit.text.tokens import split

NONE = "none"
REPEATED = "other releases of the same texts by the same experiment: what they reveal adds up"


class Rewrite(Parameters):
    """A mechanism of the catalog, its epsilon (if it has one) and its other options.

    epsilon           infinity runs a latent mechanism without noise, for comparison: its card promises nothing
    document_tokens   if given, epsilon is that of a whole document of so many tokens, also for word mechanisms
                      (`experiments.conversion`), whose texts are then cut or filled up to that length
    more              further options, so that two axes can each set some of them
    stage             the stage of a pruning whose model is used (`keep_stages` of the pretrain step); by default the
                      finished one
    parts             which parts of the data to rewrite; all of them by default
    seed              the number of this release among independent ones
    """

    mechanism: str
    epsilon: float | None = Field(default=None, gt=0)
    document_tokens: int | None = Field(default=None, ge=1)
    options: dict[str, str | int | float | bool] = Field(default={})
    more: dict[str, str | int | float | bool] = Field(default={})
    stage: int | None = Field(default=None, ge=1)
    parts: list[str] = Field(default=[])
    seed: int = 1
    test_seed: int | None = None

    @field_validator("epsilon", mode="before")
    @classmethod
    def _infinity(cls, value: Any) -> Any:
        """Infinity is text in JSON."""
        return math.inf if value == "inf" else value

    @property
    def settings(self) -> dict[str, str | int | float | bool]:
        return {**self.options, **self.more}

    def build(self, model: Path | None = None) -> Mechanism:
        options: dict[str, Any] = dict(self.settings)
        if model is not None:
            options["model"] = str(model)
        if self.epsilon == math.inf:
            options |= {"epsilon": 1.0, "noise": "none"}
        elif self.epsilon is not None and self.document_tokens is not None:
            return calibrated(self.mechanism, options, self.epsilon, self.document_tokens)
        elif self.epsilon is not None:
            options["epsilon"] = self.epsilon
        return catalog.build(self.mechanism, options)

    def read(self, texts: list[str]) -> list[str]:
        """The texts as the mechanism gets them."""
        if self.document_tokens is None or catalog.find(self.mechanism).level != "word":
            return texts
        return [fixed_length(text, self.document_tokens) for text in texts]

    def promise(self, mechanism: Mechanism, *, secure: bool) -> Guarantee:
        unit = mechanism.guarantee(secure=secure)
        return unit if self.document_tokens is None else of_document(unit, self.document_tokens)


def run(rewrite: Rewrite, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    data = inputs["data"]
    parts = rewrite.parts or parts_of(data)
    originals = {part: read_part(data, part).texts for part in parts}
    started = time.process_time()
    if rewrite.mechanism == NONE:
        released, units = originals, {part: [len(split(t)) for row in originals[part] for t in row] for part in parts}
    else:
        model = inputs["model"] / model_place(rewrite.stage) if "model" in inputs else None
        mechanism = rewrite.build(model)
        prepare(mechanism)
        key = step_key(folder, rewrite.test_seed)
        given = {part: [rewrite.read(row) for row in rows] for part, rows in originals.items()}
        if rewrite.document_tokens is not None and catalog.find(rewrite.mechanism).level == "word":
            check_length(mechanism, [t for rows in given.values() for r in rows for t in r], rewrite.document_tokens)
        released, units = released_parts(mechanism, key, rewrite.seed, given, progress)
        promise = rewrite.promise(mechanism, secure=key.secure)
        write_json(folder / "card.json", card_of(promise, data, released, units).to_dict())
    seconds = time.process_time() - started
    for part in parts:
        write_lines(folder / f"{part}.jsonl", ({"texts": row} for row in released[part]))
    write_json(folder / "parts.json", parts)
    write_json(folder / "units.json", units)
    write_json(folder / "timing.json", {"seconds": seconds, "tokens": sum(map(sum, units.values()))})


def model_place(stage: int | None) -> Path:
    """Where a pretrain step has its model, or that of a stage."""
    return Path("model") if stage is None else Path(STAGES) / f"stage-{stage}"


def prepare(mechanism: Mechanism) -> None:
    """Load what is public. That a model was trained for other epsilons is no news where a grid of them is compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        mechanism.prepare()


Texts = dict[str, list[list[str]]]


def released_parts(
    mechanism: Mechanism, key: StreamKey, seed: int, originals: Mapping[str, list[list[str]]], progress: Progress
) -> tuple[Texts, dict[str, list[int]]]:
    """Every text of every part, in blocks whose noise is fixed by key, number of the release and of the block, and
    texts. With a test seed all releases have the same key, and their number keeps them apart."""
    total = sum(len(rows) for rows in originals.values())
    released: Texts = {}
    units: dict[str, list[int]] = {}
    index = done = 0
    for part, rows in originals.items():
        job = fingerprint(mechanism, [part, str(seed)])
        released[part], units[part] = [], []
        for block in blocks(rows, mechanism.block_characters):
            texts = [text for row in block for text in row]
            result = rewrite_block(mechanism, key, index, content_digest(texts, job), texts)
            given = iter(result.texts)
            released[part] += [[next(given) for _ in row] for row in block]
            units[part] += [int(unit) for unit in result.units]
            index, done = index + 1, done + len(block)
            progress(done, total)
    return released, units


def blocks(rows: Sequence[list[str]], characters: int) -> list[list[list[str]]]:
    """Consecutive rows of about so many characters; the cuts depend on the texts alone."""
    cut: list[list[list[str]]] = [[]]
    size = 0
    for row in rows:
        cut[-1].append(row)
        size += sum(map(len, row))
        if size >= characters:
            cut.append([])
            size = 0
    return [block for block in cut if block]


def step_key(folder: Path, test_seed: int | None) -> StreamKey:
    """The key of a step that releases text: the one it began with, or a new one, stored before it is used."""
    if test_seed is not None:
        return StreamKey.from_test_seed(test_seed)
    path = folder / KEY_FILE
    try:
        return StreamKey(kept_key(path, KEY_BYTES), secure=True)
    except FileNotFoundError:
        key = StreamKey.from_os()
    write_file(path, key.key, private=True)
    return key


def card_of(promise: Guarantee, data: Path, released: Texts, units: Mapping[str, list[int]]) -> Card:
    about = read_json(data / "about.json")
    width = max(1, len(about["text"]))
    flat = [unit for part in released for unit in units[part]]
    facts = ReleaseFacts(
        rows=sum(map(len, released.values())),
        documents=len(flat),
        units=sum(flat),
        longest_document=max(flat, default=0),
        longest_row=max((longest_sum(units[part], width) for part in released), default=0),
        columns=tuple(about["text"]),
        kept_columns=(about["label"],) if about["label"] else (),
    )
    return Card(promise.also_not_covered(REPEATED), facts)


def score(folder: Path) -> dict[str, float]:
    units = [unit for values in read_json(folder / "units.json").values() for unit in values]
    numbers = {"documents": len(units), **t_interval(units or [0]).named("units per document")}
    for part in parts_of(folder):
        texts = [split(text) for row in read_lines(folder / f"{part}.jsonl") for text in row["texts"]]
        per_text = t_interval([len(words) for words in texts] or [0])
        numbers |= different_words(texts).named(f"different words in {part}")
        numbers |= per_text.times(len(texts)).named(f"words in {part}")
        numbers |= per_text.named(f"words per text in {part}")
    if (folder / "card.json").is_file():
        card = Card.of_file(folder / "card.json")
        if card.guarantee.is_private:
            numbers["epsilon of the card"] = card.guarantee.epsilon
            numbers["delta of the card"] = card.guarantee.delta
    return numbers


def different_words(texts: Sequence[Sequence[str]]) -> Interval:
    """How many there are, with the interval of the jackknife: without a text, the words that no other has are gone. It
    is rather too wide than too narrow (Efron & Stein 1981); resampled texts would always hold fewer words than these.
    """
    holders = Counter(word for words in texts for word in set(words))
    alone = [sum(holders[word] == 1 for word in set(words)) for words in texts]
    reach = t_interval(alone or [0]).times(max(0, len(texts) - 1))
    number = len(holders)
    return Interval(number, number + reach.low - reach.value, number + reach.high - reach.value, len(texts))


def check(rewrite: Rewrite, inputs: frozenset[str] = frozenset()) -> None:
    if rewrite.mechanism == NONE:
        if rewrite.epsilon is not None or rewrite.settings:
            raise BadInputError(
                "copy-with-options",
                "the mechanism 'none' copies the texts: it has no epsilon and no options; leave them out",
            )
        return
    cls = catalog.find(rewrite.mechanism)
    if not has_epsilon(cls) and rewrite.epsilon is not None:
        raise BadInputError(
            "mechanism-without-epsilon",
            "the mechanism '{mechanism}' has no epsilon, so an epsilon or a grid of them says nothing: leave it out",
            mechanism=rewrite.mechanism,
        )
    if has_epsilon(cls) and rewrite.epsilon is None:
        raise BadInputError(
            "mechanism-needs-epsilon",
            "the mechanism '{mechanism}' needs an epsilon: give one, or vary over epsilon",
            mechanism=rewrite.mechanism,
        )
    if rewrite.epsilon == math.inf and not any(item.name == "noise" for item in fields(cls)):
        raise BadInputError(
            "mechanism-needs-noise",
            "the mechanism '{mechanism}' cannot run without noise: leave out epsilon = inf",
            mechanism=rewrite.mechanism,
        )
    if forbidden := {"seed", "epsilon"} & set(rewrite.settings):
        raise BadInputError(
            "option-of-the-runner",
            "'options' cannot hold '{option}': the runner gives it to the mechanism",
            option=min(forbidden),
        )
    if "model" not in inputs and rewrite.document_tokens is not None:
        prepare(rewrite.build())
    elif "model" not in inputs:
        rewrite.build()
        _prepared(rewrite.mechanism, tuple(sorted(rewrite.settings.items())), rewrite.epsilon)


def fits(rewrite: Rewrite, inputs: Mapping[str, PlannedCell]) -> None:
    data = data_in(inputs)
    check_texts(data)
    for part in rewrite.parts:
        check_part(data, part, "parts")
    if rewrite.stage is not None:
        made = inputs["model"].parameters if "model" in inputs else None
        if not isinstance(made, Pretrain) or not made.keep_stages or rewrite.stage > made.stages:
            raise BadInputError(
                "no-such-stage",
                "there is no stage {stage} to rewrite with: name the pretrain step with 'model', and let it keep its "
                "stages with keep_stages = true",
                stage=rewrite.stage,
            )


def check_released(texts: PlannedCell, part: str, key: str) -> None:
    """Whether a rewrite step releases the part that the parameter `key` of another step names."""
    made = texts.parameters
    assert isinstance(made, Rewrite)  # `Input.kinds` lets nothing else stand there
    released = made.parts or list(data_in(texts.inputs).parts)
    if part not in released:
        raise BadInputError(
            "part-not-rewritten",
            "'{key}' names the part '{part}', which is not rewritten: name it in 'parts' of the rewrite step, or take "
            "one of {parts}",
            key=key,
            part=part,
            parts=", ".join(released),
        )


def check_both(inputs: Mapping[str, PlannedCell], part: str, key: str = "part") -> None:
    """Whether there are originals and released texts of a part, for a step that compares them."""
    check_part(data_in(inputs), part, key)
    check_released(inputs["texts"], part, key)


def _prepared(mechanism: str, options: tuple[tuple[str, Any], ...], epsilon: float | None) -> None:
    """Load the public data of a mechanism once for all its epsilons, so that what is missing is said in the beginning.

    Truncated Gumbel and the like check their epsilon only when they are used: such a cell fails and says so.
    """
    if (mechanism, options) not in _KNOWN:
        _KNOWN.add((mechanism, options))
        prepare(Rewrite(mechanism=mechanism, options=dict(options), epsilon=epsilon).build())


_KNOWN: set[tuple[str, tuple[tuple[str, Any], ...]]] = set()


def has_epsilon(cls: type[Mechanism]) -> bool:
    """Whether the promise of a mechanism depends on an epsilon; one that has a default promises the same anyway."""
    return next(item for item in fields(cls) if item.name == "epsilon").default is MISSING


def meaning(rewrite: Rewrite) -> str | None:
    """The unit that the epsilon of a mechanism is counted per; one per unit of distance depends on the vectors."""
    if rewrite.mechanism == NONE:
        return None
    cls = catalog.find(rewrite.mechanism)
    if rewrite.document_tokens is not None:
        return "per document"
    if "metric" not in cls.notion:
        return f"per {cls.unit}"
    vectors, limit = rewrite.settings.get("vectors", "default"), rewrite.settings.get("limit")
    space = f"{vectors}, {limit} words" if limit else f"{vectors}"
    return f"per {cls.unit} and unit of distance (vectors: {space})"


def content(rewrite: Rewrite) -> dict[str, Any]:
    """The values of the key. A parameter that came later counts where it is used: no earlier cell is run again."""
    later = {"more": bool(rewrite.more), "stage": rewrite.stage is not None}
    values = rewrite.model_dump(exclude={name for name, used in later.items() if not used})
    return {**values, **code_of_plugin(rewrite.mechanism)}


def code_of_plugin(mechanism: str) -> dict[str, str]:
    """The digest that a mechanism of a plug-in adds to the key: its code may change, and has no version."""
    digest = source_digest(catalog.find(mechanism)) if mechanism in catalog.mechanism_names() else None
    return {} if digest is None else {"plugin": digest}


KIND = Kind(
    "rewrite", 2, Rewrite, run, score, {"data": Input(("data",)), "model": Input(("pretrain",), required=False)}, check,
    content, meaning, measures=("different words in test", "epsilon of the card"), fits=fits,
    further=("documents", "units per document", "different words in *", "words in *", "words per text in *",
             *OF_THE_CARD),
)  # fmt: skip
