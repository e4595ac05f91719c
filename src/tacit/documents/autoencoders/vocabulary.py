"""A vocabulary from public text: every string has pieces, so no text is refused and none passes through.

    byte pairs   Sennrich, Haddow & Birch, "Neural machine translation of rare words with subword units" (ACL 2016), on
                 bytes: a word that is not in the vocabulary is spelled
    words        the most frequent words, as ADePT has them (Krishna et al. 2021): every other one is the same unknown
                 word, which leaves nothing behind in what is written

A vocabulary made from private text would show which words occur in it (pitfall P12), so it is made from public text
only.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import BadInputError, require

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PADDING, START, END, UNKNOWN = "<pad>", "<s>", "</s>", "<unk>"
FILE = "tokenizer.json"


def train_vocabulary(texts: Iterable[str], size: int, *, lowercase: bool = False, words: bool = False) -> Tokenizer:
    """A `tokenizers.Tokenizer` with `size` pieces (at most so many `words`), the four marks first."""
    library = require("tokenizers", extra="documents", purpose="a vocabulary of word pieces")
    shared: dict[str, Any] = {
        "vocab_size": size, "special_tokens": [PADDING, START, END, UNKNOWN], "show_progress": False,
    }  # fmt: skip
    if words:
        tokenizer = library.Tokenizer(library.models.WordLevel(unk_token=UNKNOWN))
        tokenizer.pre_tokenizer = library.pre_tokenizers.Whitespace()
        trainer = library.trainers.WordLevelTrainer(**shared)
    else:
        tokenizer = library.Tokenizer(library.models.BPE(unk_token=None))
        tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = library.decoders.ByteLevel()
        trainer = library.trainers.BpeTrainer(initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(), **shared)
    if lowercase:
        tokenizer.normalizer = library.normalizers.Lowercase()
    tokenizer.train_from_iterator(texts, trainer=trainer)
    made: Tokenizer = tokenizer
    return made


def load_vocabulary(folder: Path) -> Tokenizer:
    library = require("tokenizers", extra="documents", purpose="a vocabulary of word pieces")
    path = folder / FILE
    try:
        tokenizer: Tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise BadInputError(
            "damaged-model", "{path} is missing or damaged: copy the whole checkpoint again", path=path
        ) from error
    return tokenizer
