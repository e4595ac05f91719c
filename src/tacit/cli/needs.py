"""What each command needs to be installed, with the options it was given: checked before the command begins.

A command that is made from configurations says so itself (`Config.needs`); any other needs a line in `COMMANDS`, and a
test compares the table with the commands that there are. What cannot be
known before a file is opened (which mechanism a card names, say) is checked where it is read.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tacit import needs
from tacit.needs import Ability, check, needs_of_encoder, needs_of_language_model, needs_of_ledger, needs_of_mechanism
from tacit.needs import needs_of_place as place

Options = Mapping[str, Any]
Declared = Callable[[Options], list[Ability]]

ADAPTED: Final = ("lora", "ia3")


def nothing(options: Options) -> list[Ability]:
    return []


def _engine(options: Options) -> list[Ability]:
    return [needs.RAY] if options.get("engine") == "ray" else []


def _pairs(options: Options) -> dict[str, str]:
    """`--option NAME=VALUE` and `--vectors`, as the mechanism will get them."""
    named = dict(text.partition("=")[::2] for text in options.get("option") or ())
    return {**named, **({"vectors": options["vectors"]} if options.get("vectors") else {})}


def _rewrite(options: Options) -> list[Ability]:
    name = options["mechanism"] or {"document": "codebook"}.get(options["level"] or "", "santext")
    only_the_card = options["dry_run"] and name in needs.DOCUMENT_NEEDS  # most cards need no model
    return [
        *_engine(options),
        *([] if only_the_card else needs_of_mechanism(name, _pairs(options))),
        *place(options["input"], options["format"]),
        *place(options["output"]),
        *needs_of_ledger(options["ledger"]),
    ]


def _pretrain(options: Options) -> list[Ability]:
    return [needs.MODELS, needs.BLEU]


def _pretrain_sanitized(options: Options) -> list[Ability]:
    return [*needs_of_encoder(options["model"]), *needs_of_mechanism(options["mechanism"], _pairs(options))]


def _network(options: Options) -> list[Ability]:
    """The model of a training run, and what is trained in it."""
    from_scratch = options["model"] == "bilstm" and not options.get("tokenizer")
    adapted = (options.get("strategy") or "") in ADAPTED
    return [
        *needs_of_encoder("minilm" if from_scratch else options["model"]),
        *([needs.ADAPTERS] if adapted else []),
        *([needs.TENSORBOARD] if options.get("tensorboard") else []),
        *([needs.OPACUS] if options.get("engine") == "opacus" else []),
    ]


def _budget(options: Options) -> list[Ability]:
    epsilon = options.get("epsilon")
    return [needs.ACCOUNTING] if epsilon is not None and epsilon != math.inf else []


def _data(*names: str) -> Declared:
    def declared(options: Options) -> list[Ability]:
        found: list[Ability] = []
        for name in names:
            path = options.get(name)
            found += place(None if path is None else str(path), options.get("format"))
            if path is not None and "://" not in str(path) and Path(str(path)).is_dir():
                found.append(needs.DATASETS)
        return found

    return declared


def _train(usual_strategy: str) -> Declared:
    def declared(options: Options) -> list[Ability]:
        chosen = {**options, "strategy": options["strategy"] or usual_strategy}
        if options["model"] == "bilstm" and options["strategy"] is None:
            chosen["strategy"] = "full"
        return [*_network(chosen), *_budget(options), *_data("data", "test")(options)]

    return declared


def _train_translate(options: Options) -> list[Ability]:
    return [*_train("lora")(options), *([needs.BLEU] if options["test"] else [])]


def _train_rewrite(options: Options) -> list[Ability]:
    return [*_network(options), *_budget(options), *_data("data")(options)]


def _train_check(options: Options) -> list[Ability]:
    return _network(options)


def _predict(options: Options) -> list[Ability]:
    return [needs.MODELS, *_data("data")(options), *place(str(options.get("output") or ""))]


def _graph_train(options: Options) -> list[Ability]:
    return [
        *([needs.MODELS, needs.ACCOUNTING] if options["method"] == "subgraphs" else []),
        *(needs_of_encoder("minilm") if options["features"] == "minilm" else []),
        *place(options["nodes"]),
        *place(options["links"]),
    ]


def _graph_predict(options: Options) -> list[Ability]:
    return [*place(options["nodes"]), *place(options["links"]), *place(str(options["output"] or ""))]


def _synthesize(options: Options) -> list[Ability]:
    if options["from_model"] is not None:
        return [needs.MODELS, *place(str(options["output"]))]
    return [
        *needs_of_language_model(options["model"]),
        *([needs.ADAPTERS] if options["strategy"] in ADAPTED else []),
        *_budget(options),
        *_data("data")(options),
        *place(str(options["output"])),
        *([needs.PLOTS] if options["check"] is not None else []),
    ]


_usual = {"classify": "bias", "regress": "bias", "tag": "last-2"}
_tasks = ("classify", "regress", "tag", "answer", "write", "fill")

COMMANDS: Final[Mapping[str, Declared]] = {
    "rewrite": _rewrite,
    "pretrain sanitized": _pretrain_sanitized,
    **{f"pretrain {name}": _pretrain for name in ("autoencoder", "prune", "noise", "average")},
    "vocabulary build": lambda options: [needs.TOKENIZERS, *place(options["data"], options["format"])],
    "vocabulary show": nothing,
    **{f"train {task}": _train(_usual.get(task, "lora")) for task in _tasks},
    "train translate": _train_translate,
    "train rewrite": _train_rewrite,
    "train selective": _train_rewrite,
    "train check": _train_check,
    **{f"federate {task}": _train("head") for task in _tasks},
    "federate translate": _train_translate,
    "graph train": _graph_train,
    "graph predict": _graph_predict,
    "predict": _predict,
    "synthesize": _synthesize,
}
"""The words of a command, and what it needs with its options."""


def guard(command: Any, words: str) -> None:
    """Let a command, and those below it, check what they need before they begin."""
    for name, below in getattr(command, "commands", {}).items():
        guard(below, f"{words} {name}")
    if command.callback is not None and words in COMMANDS:
        command.callback = _checked(words, command.callback)


def _checked(words: str, begin: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(begin)
    def checked(*arguments: Any, **options: Any) -> Any:
        check(f"'tacit {words}'", COMMANDS[words](options))
        return begin(*arguments, **options)

    return checked
