"""A copy of a model folder that may leave: the model, its tokenizer, its card, and who made what it began with.

Only files that Tacit and the libraries it saves with are known to write are copied. Whatever else lies in the folder
may be a log, a note, or rows that somebody put there, so one unknown name refuses the whole folder: nobody has to guess
what a stranger would find in it. Checkpoints, logs and keys lie in the private folder beside it and are never looked at
(`tacit.training.private_folder`); what earlier versions kept in `private/` is left out.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.atomic import draft_folder
from tacit.card import Card
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.lineage import CARD, RECORD, SETTINGS, VOCABULARY_CARD, lineage_of, read_card
from tacit.places import refuse_taken_folder
from tacit.training.private_folder import STATE, private_folder

OF_TACIT: Final = frozenset(
    {
        CARD, RECORD, SETTINGS, VOCABULARY_CARD, "card.md", "card.html", "training.card.json", "synthesis.json",
        "words.tsv", "graph.json", "weights.npz", "head.npz", "vectors.json",
    }
)  # fmt: skip
OF_LIBRARIES: Final = frozenset(
    {
        "config.json", "generation_config.json", "model.safetensors", "model.safetensors.index.json", "model.pt",
        "adapter_config.json", "adapter_model.safetensors", "tokenizer.json", "tokenizer_config.json",
        "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model",
        "sentencepiece.bpe.model", "tokenizer.model", "chat_template.jinja", "README.md",
    }
)  # fmt: skip
ATTRIBUTION: Final = re.compile(r"(LICENSE|NOTICE|ATTRIBUTION|AUTHORS)(\.(txt|md))?")
PARTS_OF_MODEL: Final = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
PRIVATE: Final = "private"
MOST_NAMED: Final = 5


@dataclass(frozen=True)
class SharedFolder:
    """A folder that may leave: its card, the names of its files, and what was left behind."""

    folder: Path
    card: Card
    files: tuple[str, ...]
    left_out: tuple[str, ...]


def may_leave(name: str) -> bool:
    """Whether a file of this name is one that Tacit, or a library it saves with, writes for readers.

    >>> may_leave("model-00001-of-00002.safetensors"), may_leave("optimizer.pt"), may_leave("LICENSE.txt")
    (True, False, True)
    """
    known = name in OF_TACIT or name in OF_LIBRARIES
    return known or ATTRIBUTION.fullmatch(name) is not None or PARTS_OF_MODEL.fullmatch(name) is not None


def share_folder(folder: Path, destination: Path) -> SharedFolder:
    """A copy of what may leave of a folder that Tacit has made; nothing is copied if anything in it is unknown."""
    card = _checked_card(folder)
    refuse_taken_folder(destination)
    if destination.resolve().is_relative_to(folder.resolve()):
        raise BadInputError(
            "copy-into-itself", "{destination} lies inside of the folder: give another place", destination=destination
        )
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    left_out = tuple(entry.name for entry in entries if entry.name == PRIVATE and entry.is_dir())
    files = [entry for entry in entries if entry.name not in left_out]
    unknown = [file.name for file in files if file.is_symlink() or not file.is_file() or not may_leave(file.name)]
    if unknown:
        raise BadInputError(
            "unknown-files",
            "nobody knows whether {names} in {folder} may leave, so nothing was copied: move them elsewhere, and share "
            "again",
            names=", ".join(f"'{name}'" for name in unknown[:MOST_NAMED]) + (" …" if unknown[MOST_NAMED:] else ""),
            folder=folder,
        )
    with draft_folder(destination) as draft:
        for file in files:
            shutil.copyfile(file, draft / file.name)
        if not (draft / "card.md").exists():
            (draft / "card.md").write_text(card.to_markdown(), encoding="utf-8")
        names = tuple(sorted(file.name for file in draft.iterdir()))
    return SharedFolder(destination, card, names, left_out)


def _checked_card(folder: Path) -> Card:
    """The card of a finished folder that promises something, or whose text was declared public."""
    place = next((folder / name for name in (CARD, VOCABULARY_CARD) if (folder / name).is_file()), None)
    if (private_folder(folder) / STATE).exists():
        raise BadInputError(
            "unfinished-run",
            "there is an unfinished run in {folder}: go on with it first, with the option 'resume' of its command",
            folder=folder,
        )
    if place is None:
        raise BadInputError(
            "no-such-card", "the folder {folder} has no privacy card: nothing is shared without one", folder=folder
        )
    card = read_card(place)
    reason = lineage_of(folder).unpaid if place.name == CARD else card.guarantee.void or None
    if reason is not None:
        raise NoGuaranteeError(
            "model-has-no-guarantee",
            "{name} has no guarantee ({reason}), so it may repeat what it has read, and is not to be shared: train it "
            "with an epsilon",
            name=folder.name,
            reason=reason,
        )
    return card
