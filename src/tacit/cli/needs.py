"""What each command needs to be installed, with the options it was given: checked before the command begins.

A command that is made from configurations says so itself (`Config.needs`); any other needs a line in `COMMANDS`, and a
test compares the table with the commands that there are. What cannot be
known before a file is opened (which mechanism a card names, say) is checked where it is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from tacit import needs
from tacit.needs import Ability, check, needs_of_encoder, needs_of_language_model, needs_of_ledger, needs_of_mechanism
from tacit.needs import needs_of_place as place

Options = Mapping[str, Any]
Declared = Callable[[Options], list[Ability]]

CLASSIFYING_ATTACKS: Final = ("authorship", "attributes", "linkage")


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


def _page(options: Options) -> list[Ability]:
    return [needs.PLOTS] if options["html"] is not None else []


def _audit_mechanism(options: Options) -> list[Ability]:
    return [*needs_of_mechanism(options["name"] or "", _pairs(options)), *_page(options)]


def _audit_text(options: Options) -> list[Ability]:
    chosen = {name.strip() for name in options["attacks"].split(",")}
    found = [*place(options["original"], options["format"]), *place(options["private"], options["private_format"])]
    found += needs_of_mechanism(options["mechanism"] or "", _pairs(options))
    if chosen & {"all", *CLASSIFYING_ATTACKS}:
        found.append(needs.CLASSIFIERS)
    if chosen & {"all", "inversion"} and options["prior"] is None:
        found.append(needs.FREQUENCIES)
    if options["encoder"] not in ("auto", "none"):
        found += needs_of_encoder(options["encoder"])
    for model in options["language_model"] or ():
        found += needs_of_language_model(model)
    return [*found, *_page(options)]


def _audit_model(options: Options) -> list[Ability]:
    return [
        needs.MODELS, needs.BLEU, *place(options["members"], options["format"]),
        *place(options["non_members"], options["format"]), *_page(options),
    ]  # fmt: skip


def _ledger(options: Options) -> list[Ability]:
    return needs_of_ledger(str(options.get("place") or options.get("ledger") or ""))


def _serve(options: Options) -> list[Ability]:
    return [needs.SERVICE, *needs_of_ledger(options.get("ledger"))]


def _experiment(options: Options) -> list[Ability]:
    return [needs.EXPERIMENT_PAGES]


def _experiment_text(options: Options) -> list[Ability]:
    return [needs.EXPERIMENTS]


_ledger_commands = ("show", "limit", "add", "export", "verify", "backup", "restore", "accept", "rotate-key")

COMMANDS: Final[Mapping[str, Declared]] = {
    "rewrite": _rewrite,
    "audit mechanism": _audit_mechanism,
    "audit text": _audit_text,
    "audit model": _audit_model,
    "audit canaries": nothing,
    "serve": _serve,
    **{f"serve keys {name}": _serve for name in ("add", "change", "list", "rebind", "revoke")},
    **{f"experiment {name}": _experiment for name in ("run", "resume", "report")},
    **{f"experiment {name}": _experiment_text for name in ("list", "compare", "summary")},
    "data": nothing,
    "data show": nothing,
    "data fetch": lambda options: [needs.EXPERIMENTS] if options["experiment"] is not None else [],
    **{f"ledger {name}": _ledger for name in _ledger_commands},
    "mechanisms": nothing,
    **{f"calibrate {name}": nothing for name in ("laplace", "gaussian", "response")},
    "calibrate sgd": lambda options: [needs.ACCOUNTING],
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
