"""The tables of docs/training-models.md: which engine takes which architecture for which task, and how exactly.

Each cell is a tiny model with random weights, made from its configuration (nothing is downloaded), laid out and checked
as `tacit train` does before a run: the first engine whose gradients agree with one example at a time is named, with its
largest deviation from it.

python .ci/architecture_page.py                    writes the tables into the page (about two minutes)
python .ci/architecture_page.py --only gemma3,t5   prints these rows
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from tacit.errors import TacitError
from tacit.training.gradients import Checked, choose
from tacit.training.layout import choose_layout
from tacit.training.models import check_decoder
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import Labeling, Task, task_named

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "training-models.md"
BEGIN, END = "<!-- tables: python .ci/architecture_page.py -->", "<!-- end of the tables -->"
TASKS: Final = ("classify", "tag", "answer", "write", "fill", "translate")
STRATEGIES: Final = ("full", "lora")
PIECES, LENGTH = 97, 24
PADDING, START, STOP, MASK = 0, 1, 2, 3

MARKS: Final[dict[str, Any]] = {"pad_token_id": PADDING, "bos_token_id": START, "eos_token_id": STOP}
SHAPE: Final[dict[str, Any]] = {
    "vocab_size": PIECES, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, **MARKS,
}  # fmt: skip
GROUPED: Final[dict[str, Any]] = {**SHAPE, "num_key_value_heads": 2}
HEADS: Final[dict[str, Any]] = {**GROUPED, "head_dim": 8}
SEQUENCE: Final[dict[str, Any]] = {
    "vocab_size": PIECES, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, **MARKS,
    "decoder_start_token_id": STOP, "forced_eos_token_id": STOP,
}  # fmt: skip
T5_SHAPE: Final[dict[str, Any]] = {
    "vocab_size": PIECES, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
    "pad_token_id": PADDING,
    "eos_token_id": STOP, "decoder_start_token_id": PADDING,
}  # fmt: skip

FAMILIES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "BERT": ("bert", SHAPE),
    "RoBERTa": ("roberta", SHAPE),
    "DeBERTa-v3": (
        "deberta-v2",
        {**SHAPE, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8,
         "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False, "type_vocab_size": 0},
    ),
    "ELECTRA": ("electra", {**SHAPE, "embedding_size": 16}),
    "ModernBERT": (
        "modernbert",
        {**SHAPE, "global_attn_every_n_layers": 2, "local_attention": 8, "cls_token_id": START, "sep_token_id": STOP},
    ),
    "DistilBERT": (
        "distilbert",
        {"vocab_size": PIECES, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 64,
         "pad_token_id": PADDING},
    ),
    "ALBERT": ("albert", {**SHAPE, "embedding_size": 16}),
    "MPNet": ("mpnet", SHAPE),
    "XLNet": ("xlnet", {"vocab_size": PIECES, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48, **MARKS}),
    "BART": ("bart", SEQUENCE),
    "mBART": ("mbart", SEQUENCE),
    "T5": ("t5", T5_SHAPE),
    "T5 1.1 (gated)": ("t5", {**T5_SHAPE, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "GPT-2": ("gpt2", {"vocab_size": PIECES, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **MARKS}),
    "GPT-NeoX": ("gpt_neox", SHAPE),
    "OPT": (
        "opt",
        {"vocab_size": PIECES, "hidden_size": 32, "word_embed_proj_dim": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "ffn_dim": 48, "max_position_embeddings": 64, **MARKS},
    ),
    "BLOOM": ("bloom", {"vocab_size": PIECES, "hidden_size": 32, "n_layer": 2, "n_head": 4, **MARKS}),
    "Falcon": (
        "falcon",
        {"vocab_size": PIECES, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "ffn_hidden_size": 48, "max_position_embeddings": 64, "multi_query": True, **MARKS},
    ),
    "Llama": ("llama", GROUPED),
    "Mistral": ("mistral", {**GROUPED, "sliding_window": 8}),
    "Qwen2": ("qwen2", GROUPED),
    "Qwen3": ("qwen3", HEADS),
    "Phi-3": ("phi3", GROUPED),
    "Gemma": ("gemma", HEADS),
    "Gemma 2": ("gemma2", {**HEADS, "query_pre_attn_scalar": 8, "sliding_window": 8}),
    "Gemma 3": ("gemma3_text", {**HEADS, "query_pre_attn_scalar": 8, "sliding_window": 8}),
    "OLMo 2": ("olmo2", GROUPED),
    "Mamba": (
        "mamba",
        {"vocab_size": PIECES, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, "time_step_rank": 4,
         **MARKS},
    ),
    "Mixtral": ("mixtral", {**GROUPED, "num_local_experts": 3, "num_experts_per_tok": 2}),
    "Qwen3 MoE": (
        "qwen3_moe",
        {**HEADS, "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    ),
}  # fmt: skip
"""The name of each architecture, its kind in transformers, and the settings of a tiny one."""


def words() -> transformers.PreTrainedTokenizerBase:
    """A tokenizer with `PIECES` pieces and every mark a model may ask for."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    marks = ["<pad>", "<s>", "</s>", "<mask>", "<unk>"]
    pieces = [*marks, *(f"w{i}" for i in range(PIECES - len(marks)))]
    made = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(pieces)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", mask_token="<mask>",
        unk_token="<unk>", cls_token="<s>", sep_token="</s>",
    )  # fmt: skip


def task_for(name: str, config: transformers.PretrainedConfig) -> Task:
    task = task_named(name)(length=LENGTH)
    if name in ("classify", "tag"):
        task.labels = ["a", "b", "c"]
    if isinstance(task, Labeling) and config.is_encoder_decoder:
        task.ending = STOP
    return task


def tiny(family: str, task_name: str) -> tuple[Any, Task] | None:
    """A tiny model of this architecture for a task; nothing where the architecture does not have the task."""
    kind, shape = FAMILIES[family]
    config = transformers.AutoConfig.for_model(kind, **shape)
    task = task_for(task_name, config)
    loader: Any = getattr(transformers, task.model_class)
    if type(config) not in loader._model_mapping or (task_name == "write" and config.is_encoder_decoder):
        return None
    torch.manual_seed(0)
    model = loader.from_config(transformers.AutoConfig.for_model(kind, **shape, **task.model_options()))
    if task_name == "write":
        try:
            check_decoder(model, family)
        except TacitError:
            return None
    return model, task


def checked(family: str, task_name: str, strategy: str) -> Checked | None:
    """The engine that takes a tiny model, compared with one example at a time, as before every run."""
    made = tiny(family, task_name)
    if made is None:
        return None
    model, task = made
    tokenizer = words()
    model = apply_strategy(model, strategy, rank=2)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            # They start at zero, which would hide the gradients of the other half.
            torch.nn.init.normal_(parameter, std=0.1)
    choose_layout(task, model, tokenizer)
    return choose(model, task.loss, task.probes(tokenizer))[1]


def cell(family: str, task_name: str, strategy: str, note: Callable[[str], None]) -> str:
    try:
        result = checked(family, task_name, strategy)
    except TacitError as error:
        note(f"{family}, {task_name}, {strategy}: {error}")
        return "refused"
    if result is None:
        return ""
    for engine, reason in result.refused.items():
        note(f"{family}, {task_name}, {strategy}: {engine}: {reason}")
    return f"{result.engine} {max(result.norm_deviation, result.sum_deviation):.0e}".replace("e-0", "e-")


def table(families: list[str], strategy: str, note: Callable[[str], None]) -> Iterator[str]:
    yield f"| `--strategy {strategy}` | {' | '.join(TASKS)} |"
    yield f"|---|{'---|' * len(TASKS)}"
    for family in families:
        print(f"{family}, {strategy}", file=sys.stderr)
        yield f"| {family} | {' | '.join(cell(family, task, strategy, note) for task in TASKS)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="architectures, separated by commas; prints instead of writing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    asked = [name.strip().lower() for name in given.only.split(",") if name.strip()]
    families = [name for name, (kind, _) in FAMILIES.items() if not asked or name.lower() in asked or kind in asked]
    notes: list[str] = []
    tables = ["\n".join(table(families, strategy, notes.append)) for strategy in STRATEGIES]
    print("\n".join(notes))
    if asked:
        print("\n\n".join(tables))
        return
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n\n".join(tables) + f"\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
