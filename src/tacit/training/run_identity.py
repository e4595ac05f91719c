"""Digests that tell one run from another, and the refusal to go on with something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import BadInputError
from tacit.training.tasks import Row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def digest_of(rows: Sequence[Row]) -> str:
    """The digest of rows: other rows with the same noise would show their difference."""
    digest = hashlib.blake2b(digest_size=16)
    for row in rows:
        digest.update(json.dumps(dict(row), sort_keys=True).encode())
    return digest.hexdigest()


def digest_of_pieces(tokenizer: PreTrainedTokenizerBase) -> str:
    """A name of the pieces that a tokenizer knows."""
    known = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    return hashlib.blake2b(json.dumps(known, sort_keys=True).encode(), digest_size=16).hexdigest()


def refuse_another_run(kept: str, now: str, *, kind: str, folder: Path) -> None:
    """Refuse a folder whose run had other settings; both are described as JSON."""
    before, after = json.loads(kept), json.loads(now)
    for part in after:
        if before.get(part) != after[part]:
            raise BadInputError(
                "another-run",
                "the {kind} run in {folder} had another {part}: repeat its command, or start anew in another folder",
                kind=kind,
                folder=folder,
                part=part,
            )
