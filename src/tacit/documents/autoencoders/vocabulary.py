"""A byte-pair vocabulary from public text: every string has pieces, so no text is refused and none passes through.

Sennrich, Haddow & Birch, "Neural machine translation of rare words with subword units" (ACL 2016), on bytes. A
vocabulary made from private text would show which words occur in it (pitfall P12), so it is made from public text only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tacit.errors import BadInputError, require

PADDING, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
FILE = "tokenizer.json"


def train_vocabulary(texts: Iterable[str], size: int, *, lowercase: bool = False) -> Any:
    """A `tokenizers.Tokenizer` with `size` pieces, the four marks first."""
    library = require("tokenizers", extra="documents", purpose="a vocabulary of word pieces")
    tokenizer = library.Tokenizer(library.models.BPE(unk_token=None))
    if lowercase:
        tokenizer.normalizer = library.normalizers.Lowercase()
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[PADDING, START, END, UNKNOWN],
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    return tokenizer


def load_vocabulary(folder: Path) -> Any:
    library = require("tokenizers", extra="documents", purpose="a vocabulary of word pieces")
    path = folder / FILE
    try:
        return library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise BadInputError(f"{path} is missing or damaged: copy the whole checkpoint again") from error
