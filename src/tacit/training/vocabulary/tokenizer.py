"""Tokenizers learned from a private histogram, and what they add to the budget of a training run.

wordpiece   Schuster & Nakajima 2012; the tokenizer of BERT, and the DP-WordPiece of Hoory et al. 2021
bpe         Sennrich, Haddow & Birch 2016, on bytes; the tokenizer of GPT-2
unigram     Kudo 2018; SentencePiece, and the DP-SentencePiece of Ponomareva et al. 2022

The trainers see the released words, each repeated in proportion to its noisy count, and nothing else: what they learn
is post-processing, and the tokenizer has exactly the guarantee of the histogram. Characters that no released word has
come from a public list (printable ASCII), so that ordinary text is never unknown. Words that are released become pieces
as far as there is room.

A model that is trained on the same records with this tokenizer spends on both: `combined`. The guarantee of a
vocabulary lies beside the tokenizer as `vocabulary-card.json`, where a training run finds it.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError, check_choice, require
from tacit.guarantee import Guarantee
from tacit.places import refuse_taken_folder
from tacit.training.origin import VOCABULARY_CARD
from tacit.training.vocabulary.histogram import WordHistogram

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.trainers import Trainer
    from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

    Parts = tuple[Tokenizer, Trainer, dict[str, str]]
    """A tokenizer that has learned nothing yet, what teaches it, and its marks."""

KINDS = ("wordpiece", "bpe", "unigram")
CARD_FILE = VOCABULARY_CARD
WORDS_FILE = "words.tsv"
FEWEST_PIECES = 16
TRAINING_WORDS = 1_000_000
"""Words that a trainer is shown; larger counts are scaled down together."""

BERT_MARKS = {
    "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
}  # fmt: skip
GPT_MARKS = {
    "pad_token": "<|pad|>", "unk_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
}  # fmt: skip


def build_tokenizer(histogram: WordHistogram, *, kind: str = "wordpiece", size: int = 8000) -> PreTrainedTokenizerFast:
    """A tokenizer of at most `size` pieces that transformers can use; of its marks and single letters alone, where
    these are more. wordpiece and unigram have the marks of BERT ([CLS] text [SEP]), bpe those of GPT-2."""
    check_choice(kind, KINDS, code="unknown-tokenizer", what="tokenizer")
    if size < FEWEST_PIECES:
        raise BadParameterError(
            "too-few-pieces",
            "a tokenizer has at least {least} pieces, better thousands, not {size}",
            least=FEWEST_PIECES,
            size=size,
        )
    if not len(histogram):
        raise BadInputError(
            "no-word-is-frequent",
            "no word is frequent enough to be shown at this budget: raise epsilon, let a record add more or fewer "
            "words, or give a public word list",
        )
    library = require("tokenizers", extra="documents", purpose="a vocabulary of word pieces")
    transformers = require("transformers", extra="documents", purpose="saving a tokenizer")
    # The library refuses a unigram model without room for all letters, where the others exceed their size.
    wanted = max(size, _letters_and_marks(histogram)) if kind == "unigram" else size
    made, trainer, marks = _PARTS[kind](wanted, histogram.lowercase)
    made.train_from_iterator(chain(repeated(histogram), _alphabet(histogram)), trainer=trainer)
    if kind == "unigram":
        made.model = _with_whole_words(made, histogram, size)
    if marks is BERT_MARKS:
        first, last = (made.token_to_id(marks[mark]) for mark in ("cls_token", "sep_token"))
        made.post_processor = library.processors.BertProcessing(("[SEP]", last), ("[CLS]", first))
    names = ["input_ids", "token_type_ids", "attention_mask"] if marks is BERT_MARKS else None
    more = {} if names is None else {"model_input_names": names}
    tokenizer: PreTrainedTokenizerFast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **marks, **more)
    return tokenizer


def repeated(histogram: WordHistogram, most: int = TRAINING_WORDS) -> Iterator[str]:
    """Each word as often as its noisy count says, at least twice; all scaled down together beyond `most` words."""
    counts = np.maximum(histogram.counts, 0.0)
    factor = min(1.0, most / max(float(counts.sum()), 1.0))
    for word, count in zip(histogram.words, counts.tolist(), strict=True):
        times = max(2, round(count * factor))
        # Lines of bounded length: a trainer reads a line at a time.
        while times > 0:
            yield " ".join([word] * min(times, 1000))
            times -= 1000


def _alphabet(histogram: WordHistogram) -> Iterator[str]:
    """Every letter and digit inside a word, once: trainers merge what occurs twice, so no piece comes of it."""
    letters = {*_letters(histogram.lowercase), *(letter for word in histogram.words for letter in word)}
    for letter in sorted(letters):
        if letter.isalnum():
            yield f"a{letter}"


def _letters_and_marks(histogram: WordHistogram) -> int:
    """How many pieces a unigram model has at least: the marks, the letters as its normalizer writes them, and the sign
    of a beginning of a word."""
    lines = (*_letters(histogram.lowercase), *histogram.words)
    letters = {letter for line in lines for letter in normalize("NFKC", line)}
    return len(BERT_MARKS) + len(letters | {letter.lower() for letter in letters}) + 1


def _with_whole_words(made: Tokenizer, histogram: WordHistogram, size: int) -> Unigram:
    """The unigram model with the released words in it: the library only considers strings that occur in two different
    words, so a word without relatives would be left out. Scores are logarithms of shares, as the model's own."""
    from tokenizers.models import Unigram

    model = json.loads(made.to_str())["model"]
    pieces = {piece: float(score) for piece, score in model["vocab"]}
    shares = np.maximum(histogram.counts, 1e-3) / np.maximum(histogram.counts, 1e-3).sum()
    # Marks stay in front, single characters must stay, and of the rest those that are rarest give way.
    fixed = [piece for piece in pieces if piece in BERT_MARKS.values() or len(piece.lstrip("▁")) <= 1]
    words = {f"▁{word}": math.log(share) for word, share in zip(histogram.words, shares.tolist(), strict=True)}
    others = sorted(({**pieces, **words}).items(), key=lambda item: -item[1])
    room = [item for item in others if item[0] not in set(fixed)][: max(0, size - len(fixed))]
    vocabulary = [*((piece, pieces[piece]) for piece in fixed), *room]
    return Unigram(vocabulary, model["unk_id"], False)


def _wordpiece(size: int, lowercase: bool) -> Parts:
    import tokenizers as library

    made = library.Tokenizer(library.models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = library.normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    made.decoder = library.decoders.WordPiece()
    trainer = library.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=_marks(BERT_MARKS),
        initial_alphabet=_letters(lowercase),
        show_progress=False,
    )
    return made, trainer, BERT_MARKS


def _bpe(size: int, lowercase: bool) -> Parts:
    import tokenizers as library

    made = library.Tokenizer(library.models.BPE())
    if lowercase:
        made.normalizer = library.normalizers.Lowercase()
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=_marks(GPT_MARKS),
        initial_alphabet=library.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return made, trainer, GPT_MARKS


def _unigram(size: int, lowercase: bool) -> Parts:
    import tokenizers as library

    made = library.Tokenizer(library.models.Unigram())
    steps = [library.normalizers.NFKC(), *([library.normalizers.Lowercase()] if lowercase else [])]
    made.normalizer = library.normalizers.Sequence(steps)
    made.pre_tokenizer = library.pre_tokenizers.Metaspace()
    made.decoder = library.decoders.Metaspace()
    trainer = library.trainers.UnigramTrainer(
        vocab_size=size,
        special_tokens=_marks(BERT_MARKS),
        unk_token="[UNK]",
        initial_alphabet=_letters(lowercase),
        show_progress=False,
    )
    return made, trainer, BERT_MARKS


_PARTS = {"wordpiece": _wordpiece, "bpe": _bpe, "unigram": _unigram}


def _marks(named: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(named.values()))


def _letters(lowercase: bool) -> list[str]:
    letters = string.digits + string.punctuation + string.ascii_lowercase
    return list(letters if lowercase else letters + string.ascii_uppercase)


# The folder ---------------------------------------------------------------------------------------------------------


def save_vocabulary(
    folder: Path,
    histogram: WordHistogram,
    tokenizer: PreTrainedTokenizerBase | None = None,
    configuration: Mapping[str, object] | None = None,
) -> None:
    """Words with noisy counts, the card with the options that made them, and the tokenizer, in a new folder that
    `AutoTokenizer` loads."""
    refuse_taken_folder(folder)
    folder.mkdir(parents=True)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)
    lines = (f"{word}\t{count:.6g}\n" for word, count in zip(histogram.words, histogram.counts.tolist(), strict=True))
    (folder / WORDS_FILE).write_text("word\tnoisy count\n" + "".join(lines), encoding="utf-8")
    (folder / CARD_FILE).write_text(
        Card(histogram.guarantee, configuration=configuration or {}).to_json(), encoding="utf-8"
    )


def load_vocabulary(folder: str | Path) -> WordHistogram:
    """The histogram that lies in a vocabulary folder."""
    path = Path(folder) / WORDS_FILE
    guarantee = vocabulary_guarantee(folder)
    if guarantee is None or not path.is_file():
        raise BadInputError(
            "no-such-vocabulary",
            "there is no private vocabulary in '{folder}': make one with 'tacit vocabulary build'",
            folder=folder,
        )
    rows = [line.rsplit("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    words = [word for word, _ in rows]
    cased = any(word != word.lower() for word in words)
    return WordHistogram(words, np.array([float(count) for _, count in rows]), guarantee, lowercase=not cased)


# What it adds to a training run -------------------------------------------------------------------------------------


def vocabulary_guarantee(*folders: str | Path | None) -> Guarantee | None:
    """The guarantee of the vocabulary in one of these folders (model, tokenizer); None if none was learned from private
    text, or the name is not a folder."""
    for folder in folders:
        path = None if folder is None else Path(folder) / CARD_FILE
        if path is not None and path.is_file():
            return Card.of_file(path).guarantee
    return None


def combined(vocabulary: Guarantee | None, training: Guarantee) -> Guarantee:
    """The guarantee of a model whose tokenizer was learned from the same records: epsilons and deltas add up (Dwork &
    Roth 2014, Theorem 3.16). Refused when the two promises are about different units or neighbors, void when one of
    them is.

    For a vocabulary of *other* people's records nothing needs to be added; whether they are others cannot be read off a
    card, so adding up is the rule.
    """
    return training if vocabulary is None else training.then(vocabulary)
