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
from tacit.needs import Ability, check, needs_of_encoder, needs_of_language_model
from tacit.needs import needs_of_place as place

Options = Mapping[str, Any]
Declared = Callable[[Options], list[Ability]]

ADAPTED: Final = ("lora", "ia3")


def nothing(options: Options) -> list[Ability]:
    return []


def _pairs(options: Options) -> dict[str, str]:
    """`--option NAME=VALUE` and `--vectors`, as the mechanism will get them."""
    named = dict(text.partition("=")[::2] for text in options.get("option") or ())
    return {**named, **({"vectors": options["vectors"]} if options.get("vectors") else {})}


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


def _train_selective(options: Options) -> list[Ability]:
    return [*_network(options), *_budget(options), *_data("data")(options)]


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


COMMANDS: Final[Mapping[str, Declared]] = {
    "train selective": _train_selective,
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
