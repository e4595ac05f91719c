"""One private training step against a non-private one on the same machine, in the same run.

The private step: per-example losses, exact clipping by taps in parts of 32 examples, noise from the secure generator,
AdamW. The non-private step: the mean loss, one backward pass, AdamW. Batch 256, length 64, vocabulary 8,000, width 128,
two layers; random weights and random texts. Each part runs in a process of its own; the best of some steps counts, in
CPU seconds of one thread. Memory is the peak above what was there before the first step.

    python benchmarks/dp_step.py
    python benchmarks/dp_step.py --only bert --opacus
"""

from __future__ import annotations

import time
from typing import Any

from measure import Facts, Report, answer_part, arguments_parser, peak_memory, run_part, say

VOCABULARY, BATCH, LENGTH = 8000, 256, 64
TARGETS = {"bert": (1.9, 1.2), "bert lora": (1.15, None), "gpt2 tied": (1.6, 1.3), "t5 tied": (2.2, 1.3)}


def build(name: str) -> tuple[Any, Any, dict[str, Any]]:
    import torch
    import transformers
    from torch.nn.functional import cross_entropy

    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ids = torch.randint(2, VOCABULARY, (BATCH, LENGTH))
    batch: dict[str, Any] = {"input_ids": ids, "labels": torch.randint(0, 2, (BATCH,))}
    model: Any
    if name.startswith("bert"):
        model = transformers.BertForSequenceClassification(
            transformers.BertConfig(
                vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                intermediate_size=512, max_position_embeddings=LENGTH, num_labels=2,
            )
        )  # fmt: skip
        if "lora" in name:
            import peft

            model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules=["query", "value"]))

        def loss(network: Any, part: Any) -> Any:
            return cross_entropy(network(input_ids=part["input_ids"]).logits, part["labels"], reduction="none")

    elif name.startswith("gpt2"):
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=VOCABULARY, n_embd=128, n_layer=2, n_head=2, n_positions=LENGTH, bos_token_id=1,
                eos_token_id=1,
            )
        )  # fmt: skip

        def loss(network: Any, part: Any) -> Any:
            logits = network(input_ids=part["input_ids"], use_cache=False).logits[:, :-1]
            return cross_entropy(logits.transpose(1, 2), part["input_ids"][:, 1:], reduction="none").mean(1)

    else:
        model = transformers.T5ForConditionalGeneration(
            transformers.T5Config(
                vocab_size=VOCABULARY, d_model=128, d_kv=64, d_ff=512, num_layers=2, num_heads=2, pad_token_id=0,
                decoder_start_token_id=0, tie_word_embeddings=True,
            )
        )  # fmt: skip

        def loss(network: Any, part: Any) -> Any:
            logits = network(input_ids=part["input_ids"], decoder_input_ids=part["input_ids"], use_cache=False).logits
            return cross_entropy(logits.transpose(1, 2), part["input_ids"].flip(1), reduction="none").mean(1)

    model.train()
    return model, loss, batch


def measure_step(name: str, mode: str, steps: int) -> Facts:
    import torch

    from tacit.noise.source import StreamKey
    from tacit.training.clipping import FlatClipping
    from tacit.training.gradients import choose
    from tacit.training.gradients.examples import part_of
    from tacit.training.plan import TrainingPlan
    from tacit.training.step import PrivateStep

    model, loss, batch = build(name)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    deviation = 0.0
    before = peak_memory()
    if mode != "plain":
        engine, checked = choose(model, loss, [part_of(batch, slice(0, 3)), part_of(batch, slice(3, 8))], mode)
        deviation = checked.norm_deviation
        # Every record in every step: the same batch as without privacy.
        plan = TrainingPlan(records=BATCH, batch=BATCH, steps=steps, multiplier=1.0, delta=1e-3)
        private = PrivateStep(
            plan,
            lambda ids: part_of(batch, slice(ids[0], ids[-1] + 1)),
            32,
            engine=engine,
            clipping=FlatClipping(1.0),
        )
        key = StreamKey.from_os()
    best = float("inf")
    for step in range(steps):
        start = time.process_time()
        optimizer.zero_grad()
        if mode == "plain":
            loss(model, batch).mean().backward()
        else:
            private.run(step, key)
        optimizer.step()
        best = min(best, time.process_time() - start)
    weights = sum(p.numel() for p in trained)
    return {"cpu": best, "memory": peak_memory() - before, "deviation": deviation, "weights": weights}


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--only", default="", metavar="NAMES", help="these models, separated by commas")
    parser.add_argument("--steps", type=int, default=5, help="steps of which the best counts (default 5)")
    parser.add_argument("--opacus", action="store_true", help="also the hooks of Opacus, where they run")
    given = parser.parse_args()
    names = [name.strip() for name in given.only.split(",") if name.strip()] or list(TARGETS)
    report = Report("dp_step", notes=["CPU seconds of one thread, best step; memory above what was there before"])
    rows = []
    for name in names:
        say(f"{name}")
        plain = run_part(__file__, "step", {"name": name, "mode": "plain", "steps": given.steps}, threads=1)
        modes = ["taps", *(["opacus"] if given.opacus else [])]
        for mode in modes:
            if mode == "opacus" and name.startswith("t5"):
                continue  # its table of relative positions has no batch axis, which Opacus cannot handle
            ours = run_part(__file__, "step", {"name": name, "mode": mode, "steps": given.steps}, threads=1)
            most, memory = TARGETS[name]
            ratio, grown = ours["cpu"] / plain["cpu"], ours["memory"] / max(plain["memory"], 1)
            met = ratio <= most and (memory is None or grown <= memory)
            goal = f"{most} x" + (f", {memory} x memory" if memory else "")
            rows.append([name, f"{ours['weights']:,}", mode, f"{plain['cpu']:.2f}", f"{ours['cpu']:.2f}",
                         f"{ratio:.2f}", f"{plain['memory'] / 1e6:.0f}", f"{ours['memory'] / 1e6:.0f}", f"{grown:.2f}",
                         f"{ours['deviation']:.0e}", f"{goal}: {'met' if met else 'MISSED'}"])  # fmt: skip
            report.facts[f"{name} {mode}"] = {"plain": plain, "private": ours}
    report.table(
        f"A step of {BATCH} texts of {LENGTH} tokens",
        ("model", "trained\nweights", "engine", "plain\nCPU s", "private\nCPU s", "ratio", "plain\nMB", "private\nMB",
         "ratio", "norms\noff by", "target"),
        rows,
    )  # fmt: skip
    report.show(given.json)


if __name__ == "__main__":
    answer_part({"step": measure_step})
    main()
