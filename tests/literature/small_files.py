"""Small files and models of the names that the commands of the table use, and the options that keep the runs short."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

GOOD, BAD = ("good", "fine", "great", "happy"), ("bad", "poor", "awful", "sad")
OTHERS = ("the", "a", "film", "was", "very", "and", "story")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[END]")
ROWS = 160

TRAINING = f"--batch {ROWS} --epochs 1 --length 16 --physical {ROWS} -q"
USERS = f"--model tiny-classifier --cohort {ROWS // 4} --epochs 2 --length 16 -q"
WORDS = "--vectors vectors.txt -q"
SMALLER = {
    "tacit train classify": f"--model tiny-classifier {TRAINING}",
    "tacit train fill": f"--model tiny-filler --strategy full {TRAINING}",
    "tacit train tag": f"--model tiny-tagger --strategy full {TRAINING}",
    "tacit train answer": f"--model tiny-reader --strategy full {TRAINING}",
    "tacit train translate": f"--model tiny-translator --strategy full {TRAINING}",
    "tacit train selective": f"--model tiny-writer --strategy full {TRAINING}",
    "tacit train ensemble": "--model tiny-writer --shards 2 --epochs 1 --length 16 -q",
    "tacit predict ensemble": "--tokens 6 -q",
    "tacit topics": "-q",
    "tacit federate classify": USERS,
    "tacit graph train": "-q",
    "tacit vocabulary build": "--vocabulary-size 400 -q",
    "tacit vocabulary ngrams": "-q",
    "tacit embed": "-q",
    "tacit synthesize --by training": f"{TRAINING} --model tiny-writer --strategy full -n 4 --shortest 1",
    "tacit synthesize --by prompting": "--model tiny-writer -n 4 --length 4 --input-tokens 8 --physical 8 -q",
    "tacit answer": "--model tiny-writer --sets 4 --set-examples 1 --input-tokens 4 --physical 4 -q",
    "tacit synthesize": "--pool small.tacit -n 40 -q",
    "tacit pretrain sanitized": "--model tiny-filler --steps 2 --batch 8 --length 16 --vectors vectors.txt -q",
    "tacit rewrite": "-q",
    "tacit audit mechanism": "-q",
    "tacit audit model": "-q",
}
"""What is added to a command, by its beginning: small models and few steps in place of the defaults. Every step takes
all rows, so that calibration has a closed form."""

WORD_MECHANISMS = (
    "santext", "santext+", "tem", "custext", "laplace", "vickrey", "mahalanobis", "truncated-gumbel", "two-budgets",
    "brr", "optimal", "tagged",
)  # fmt: skip


def smaller(command: str, number: int) -> list[str]:
    """The arguments of a command, with results of its own and the options that keep it short."""
    arguments = shlex.split(command)
    if "-o" in arguments:
        place = arguments.index("-o") + 1
        arguments[place] = f"results/{number}-{arguments[place]}"
    if "--grow-to" in arguments:
        arguments[arguments.index("--grow-to") + 1] = str(ROWS)
        place = arguments.index("--batch") + 1
        arguments[place] = str(ROWS // 2)
    arguments = [argument.replace("dimension=30", "dimension=4") for argument in arguments]
    if "bilstm" in arguments:
        arguments[arguments.index("bilstm")] = "bilstm-1x8"
        arguments += ["--tokenizer", "tiny-classifier"]
    ways = (f"--by {way}" for way in ("training", "prompting"))
    key = next((f"tacit synthesize {way}" for way in ways if way in command), _beginning(command))
    added = shlex.split(SMALLER.get(key, ""))
    for option in ("--model", "--strategy", "--batch"):
        if option in arguments and option in added:  # the one of the command counts
            place = added.index(option)
            del added[place : place + 2]
    arguments += added
    if "--mechanism" in arguments and arguments[arguments.index("--mechanism") + 1] in WORD_MECHANISMS:
        vectors = "short.txt" if "optimal" in arguments else "vectors.txt"
        arguments += [] if "--vectors" in arguments else ["--vectors", vectors]
    if "skellam" in arguments:
        arguments += ["--epochs", "1"]
    if "codebook" in arguments:
        arguments += ["--option", "codebook=static"]  # the same mechanism without a transformer
    return arguments[1:]


def _beginning(command: str) -> str:
    """The longest known beginning of a command."""
    return max((known for known in SMALLER if command.startswith(known + " ")), key=len, default="")


def write_small_files(folder: Path) -> None:
    """All files and models, in this folder."""
    (folder / "results").mkdir()
    rng = np.random.default_rng(0)
    for name, rows in (("notes.csv", ROWS), ("others.csv", ROWS), ("letters.csv", 6)):
        _table(folder / name, ("text", "label", "author"), (_note(i, rng) for i in range(rows)))
    _table(folder / "pairs.csv", ("source", "target"), ((_note(i, rng)[0], "good film") for i in range(ROWS)))
    _table(folder / "tagged.csv", ("tokens", "tags"), (("the film was good", "A B C D") for _ in range(ROWS)))
    _table(
        folder / "questions.csv",
        ("question", "context", "answer"),
        (("what was good", f"the film was {GOOD[i % 4]}", "film") for i in range(ROWS)),
    )
    grid = 'mean = 2\nlaw = "geometric"\n[settings]\nlearning_rate = [0.001, 0.01]\n'
    (folder / "grid.toml").write_text(grid, encoding="utf-8")
    (folder / "prompts.txt").write_text("the film was\n", encoding="utf-8")
    (folder / "public.txt").write_text("".join(_note(i, rng)[0] + "\n" for i in range(40)), encoding="utf-8")
    nodes = [f"n{i}\t{'a' if i % 2 else 'b'}\t{i % 2} {2 + i % 7}" for i in range(120)]
    (folder / "nodes.tsv").write_text("node\tlabel\tfeatures\n" + "\n".join(nodes) + "\n", encoding="utf-8")
    links = [f"n{i}\tn{(i + 2) % 120}" for i in range(120)]
    (folder / "links.tsv").write_text("source\ttarget\n" + "\n".join(links) + "\n", encoding="utf-8")
    vectors = 0.5 * rng.standard_normal((80, 8))
    words = (*GOOD, *BAD, *OTHERS, *(f"word{i}" for i in range(80 - len(GOOD + BAD + OTHERS))))
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in row)}\n" for word, row in zip(words, vectors, strict=True)]
    (folder / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "short.txt").write_text("".join(lines[:8]), encoding="utf-8")
    inside = (
        f"{word} {' '.join(f'{x:.4f}' for x in row / (1.2 * np.abs(vectors).sum(axis=1).max()))}\n"
        for word, row in zip(words, vectors, strict=True)
    )  # inside the unit ball, as hyperbolic vectors are
    (folder / "hyperbolic.txt").write_text("".join(inside), encoding="utf-8")


def write_small_pool(path: Path) -> None:
    """A pool of a few public sentences."""
    from tacit.matching.pool import PoolSource, load_pool, write_pool

    chosen = load_pool().sentences[::40]
    write_pool(path, "small", [PoolSource("Tatoeba", "CC BY 2.0 FR")], ((sentence, 0, "") for sentence in chosen))


def _note(number: int, rng: np.random.Generator) -> tuple[str, str, str]:
    words = [*rng.choice(GOOD if number % 2 else BAD, 2), *rng.choice(OTHERS, 3)]
    if number % 8 == 0:
        words.append(f"person{number}@example.org")  # something that a detector finds
    return " ".join(words), "pos" if number % 2 else "neg", f"person {number // 4}"


def _table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


def write_small_models(folder: Path, names: Sequence[str] = ()) -> None:
    """Models with a layer or two and a tokenizer of whole words; all of them, or those of these names."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = (*SPECIAL, *GOOD, *BAD, *OTHERS, "neg", "pos", "label", ":", "what", "person", "A", "B", "C", "D")
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", cls_token="[CLS]",
        sep_token="[SEP]", eos_token="[END]",
    )  # fmt: skip
    torch.manual_seed(0)
    bert = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32, pad_token_id=0,
    )  # fmt: skip
    gpt2 = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=256, bos_token_id=5, eos_token_id=5,
        pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    t5 = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2, pad_token_id=0,
        eos_token_id=5,
    )  # fmt: skip
    t5.decoder_start_token_id = 0
    kinds = {
        "tiny-classifier": (transformers.BertForSequenceClassification, bert),
        "tiny-tagger": (transformers.BertForTokenClassification, bert),
        "tiny-reader": (transformers.BertForQuestionAnswering, bert),
        "tiny-filler": (transformers.BertForMaskedLM, bert),
        "tiny-writer": (transformers.GPT2LMHeadModel, gpt2),
        "tiny-translator": (transformers.T5ForConditionalGeneration, t5),
    }
    for name in names or kinds:
        kind, configuration = kinds[name]
        kind(configuration).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
