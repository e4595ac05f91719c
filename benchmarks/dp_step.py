"""One private training step against a non-private one on the same machine, in the same run, beside Opacus.

The private step: per-example losses, exact clipping by taps, noise from the secure generator, AdamW. The non-private
step: the mean loss, AdamW. Opacus: ghost clipping (two backward passes), noise of torch, AdamW. All three work through
the same 256 texts in parts of the same size, 32 (`--physical`). Length 64, vocabulary 8,000, width 128, two layers;
random weights and random texts. "smollm2 lora" is SmolLM2-135M from its package with LoRA: 8 texts in parts of 4. Each
part runs in a process of its own; the best of some steps counts, in CPU seconds of one thread. Memory is the peak above
what was there before the first step.

    python benchmarks/dp_step.py
    python benchmarks/dp_step.py --only "bert,smollm2 lora"
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

from measure import Facts, Report, answer_part, arguments_parser, peak_memory, run_part, say

VOCABULARY, BATCH, LENGTH = 8000, 256, 64
TARGETS: dict[str, tuple[float | None, float | None]] = {
    "bert": (1.5, None), "bert lora": (1.15, None), "gpt2 tied": (1.5, None), "t5 tied": (1.6, 1.2),
    "smollm2 lora": (None, None),
}  # fmt: skip
LANGUAGE = {"smollm2 lora": (8, 4)}
"""Texts, and texts worked on at a time, of models that are too large for 256."""


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

    elif name.startswith("smollm2"):
        from tacit.jobs.training.public_models import load_public
        from tacit.training.strategies import apply_strategy
        from tacit.training.tasks import CausalLanguage

        batch = {key: values[: LANGUAGE[name][0]] for key, values in batch.items()}
        model = apply_strategy(load_public(CausalLanguage(length=LENGTH), "smollm2", print)[0], "lora")

        def loss(network: Any, part: Any) -> Any:
            logits = network(input_ids=part["input_ids"], use_cache=False).logits[:, :-1]
            return cross_entropy(logits.transpose(1, 2), part["input_ids"][:, 1:], reduction="none").mean(1)

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


def measure_step(name: str, mode: str, steps: int, physical: int) -> Facts:
    import torch

    from tacit.training.gradients.examples import part_of, size_of

    model, loss, batch = build(name)
    size = size_of(batch)
    parts = [part_of(batch, slice(start, start + physical)) for start in range(0, size, physical)]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    before = peak_memory()
    run, deviation = {"plain": plain_step, "taps": private_step, "opacus": opacus_step}[mode](
        model, loss, batch, parts, steps
    )
    best = float("inf")
    for step in range(steps):
        start = time.process_time()
        optimizer.zero_grad()
        run(step)
        optimizer.step()
        best = min(best, time.process_time() - start)
    tokens = batch["input_ids"].numel()
    weights = sum(p.numel() for p in trained)
    return {"cpu": best, "memory": peak_memory() - before, "deviation": deviation, "weights": weights, "tokens": tokens}


Step = tuple[Callable[[int], object], float]
"""A step by its number, and how far off its norms are."""


def plain_step(model: Any, loss: Any, batch: Any, parts: list[Any], steps: int) -> Step:
    size = sum(len(part["labels"]) for part in parts)

    def run(step: int) -> None:
        for part in parts:
            (loss(model, part).sum() / size).backward()

    return run, 0.0


def private_step(model: Any, loss: Any, batch: Any, parts: list[Any], steps: int) -> Step:
    from tacit.noise.source import StreamKey
    from tacit.training.clipping import FlatClipping
    from tacit.training.gradients import choose
    from tacit.training.gradients.examples import part_of, size_of
    from tacit.training.plan import TrainingPlan
    from tacit.training.step import PrivateStep

    engine, checked = choose(model, loss, [part_of(batch, slice(0, 3)), part_of(batch, slice(3, 8))], "taps")
    size = size_of(batch)
    # Every record in every step: the same batch as without privacy.
    plan = TrainingPlan(records=size, batch=size, steps=steps, multiplier=1.0, delta=1e-3)

    def collate(ids: Any) -> Any:
        return part_of(batch, slice(ids[0], ids[-1] + 1))

    private = PrivateStep(plan, collate, len(parts[0]["labels"]), engine=engine, clipping=FlatClipping(1.0))
    key = StreamKey.from_os()
    return lambda step: private.run(step, key), checked.norm_deviation


def opacus_step(model: Any, loss: Any, batch: Any, parts: list[Any], steps: int) -> Step:
    import torch
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping

    from tacit.training.gradients.opacus import batch_axis_for_positions

    wrapped = GradSampleModuleFastGradientClipping(
        model, max_grad_norm=1.0, use_ghost_clipping=True, loss_reduction="sum", strict=False
    )
    trained = [p for p in model.parameters() if p.requires_grad]
    size = sum(len(part["labels"]) for part in parts)

    def run(step: int) -> None:
        sums = [torch.zeros_like(p) for p in trained]
        for part in parts:
            with batch_axis_for_positions(model, len(part["labels"])):
                losses = loss(wrapped, part)
            losses.sum().backward(retain_graph=True)
            factors = wrapped.get_clipping_coef().detach()
            for p in trained:
                p.grad = None
            wrapped.disable_hooks()
            (losses * factors).sum().backward()
            wrapped.enable_hooks()
            for total, p in zip(sums, trained, strict=True):
                total += p.grad
                p.grad = None
        for total, p in zip(sums, trained, strict=True):
            p.grad = (total + torch.normal(0.0, 1.0, total.shape)) / size

    return run, 0.0


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--only", default="", metavar="NAMES", help="these models, separated by commas")
    parser.add_argument("--steps", type=int, default=5, help="steps of which the best counts (default 5)")
    parser.add_argument("--physical", type=int, default=32, help="texts worked on at a time (default 32)")
    given = parser.parse_args()
    names = [name.strip() for name in given.only.split(",") if name.strip()] or list(TARGETS)
    report = Report("dp_step", notes=["CPU seconds of one thread, best step; memory above what was there before"])
    rows = []
    for name in names:
        say(name)
        small = name in LANGUAGE
        asked = {"name": name, "steps": 2 if small else given.steps, "physical": LANGUAGE[name][1] if small else
                 given.physical}  # fmt: skip
        plain = run_part(__file__, "step", {**asked, "mode": "plain"}, threads=1)
        rows.append(_row(name, "plain", plain, plain, ""))
        for mode in ("taps", "opacus"):
            try:
                made = run_part(__file__, "step", {**asked, "mode": mode}, threads=1)
            except (RuntimeError, SystemExit, subprocess.CalledProcessError):
                rows.append([name, mode, "", "does not run", *[""] * 6])
                continue
            most, memory = TARGETS[name]
            goal = "" if mode == "opacus" or most is None else _goal(made, plain, most, memory)
            rows.append(_row(name, mode, made, plain, goal))
            report.facts[f"{name} {mode}"] = {"plain": plain, "private": made}
    report.table(
        f"A step of {BATCH} texts of {LENGTH} tokens, {given.physical} at a time",
        (
            "model",
            "step",
            "trained\nweights",
            "CPU s",
            "ratio",
            "tokens\nper s",
            "MB",
            "ratio",
            "norms\noff by",
            "goal",
        ),
        rows,
    )
    report.show(given.json)


def _row(name: str, mode: str, made: Facts, plain: Facts, goal: str) -> list[str]:
    return [
        name, mode, f"{made['weights']:,}", f"{made['cpu']:.2f}", f"{made['cpu'] / plain['cpu']:.2f}",
        f"{made['tokens'] / made['cpu']:,.0f}", f"{made['memory'] / 1e6:.0f}",
        f"{made['memory'] / max(plain['memory'], 1):.2f}", f"{made['deviation']:.0e}" if mode == "taps" else "", goal,
    ]  # fmt: skip


def _goal(made: Facts, plain: Facts, most: float, memory: float | None) -> str:
    grown = made["memory"] / max(plain["memory"], 1)
    met = made["cpu"] <= most * plain["cpu"] and (memory is None or grown <= memory)
    return f"{most} x" + (f", {memory} x memory" if memory else "") + f": {'met' if met else 'MISSED'}"


if __name__ == "__main__":
    answer_part({"step": measure_step})
    main()
