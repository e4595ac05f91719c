"""What a process keeps of a model that is trained privately: alone, beside others, and sharded with them.

A BERT with random weights (width 256, 4 layers, vocabulary 8,000; 5.3 million weights), all of them trained, and the
same with LoRA; AdamW, 3 private steps of 32 random texts of 32 tokens. Counted are the bytes of weights, of the
gradients that lie on them and of the optimizer's state in each process after a step, and seconds per step (processor
time of one process). Processes talk by gloo on this machine. Memory that a step takes in between (weights of a layer
while it computes, the sum of one weight) is not counted; the peak memory of the whole process is printed beside it.

    python benchmarks/sharding.py
    python benchmarks/sharding.py --processes 4
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TEXTS, LENGTH, STEPS, VOCABULARY = 32, 32, 3, 8_000
WAYS = ("whole", "sharded")


def build(strategy: str) -> Any:
    import torch
    import transformers

    from tacit.training.strategies import apply_strategy

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024,
        max_position_embeddings=LENGTH, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return apply_strategy(transformers.BertForSequenceClassification(config), strategy, rank=8)


def measured(strategy: str, way: str) -> dict[str, float]:
    """The bytes that this process keeps, and its seconds per step."""
    import torch
    from torch.nn.functional import cross_entropy

    from tacit.noise.source import StreamKey
    from tacit.training.clipping import FlatClipping
    from tacit.training.gradients import choose
    from tacit.training.plan import TrainingPlan
    from tacit.training.sharding import in_parts, own_rows
    from tacit.training.step import PrivateStep
    from tacit.training.team import Team

    torch.set_num_threads(1)
    team = Team.from_environment()
    model = build(strategy)
    generator = torch.Generator().manual_seed(1)

    def batch(size: int) -> dict[str, Any]:
        return {
            "input_ids": torch.randint(2, VOCABULARY, (size, LENGTH), generator=generator),
            "labels": torch.randint(0, 2, (size,), generator=generator),
        }

    def loss(network: Any, part: Any) -> Any:
        return cross_entropy(network(input_ids=part["input_ids"]).logits, part["labels"], reduction="none")

    probes = [batch(3), batch(5)]
    engine, _ = choose(model, loss, probes, "taps")
    shards = in_parts(model, engine, probes, team, torch.device("cpu")) if way == "sharded" else None
    texts = batch(TEXTS)
    step = PrivateStep(
        TrainingPlan(TEXTS, TEXTS, STEPS, 1.0, 1e-3),
        lambda records: {name: values[list(records)] for name, values in texts.items()},
        8, team=team, engine=engine, clipping=FlatClipping(1.0), model=model, shards=shards,
    )  # fmt: skip
    trained = list(engine.parameters.values())
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    key = StreamKey.from_test_seed(0)
    started = 0.0
    for number in range(STEPS):
        if number == 1:
            started = time.process_time()
        step.run(number, key)
        optimizer.step()
    seconds = (time.process_time() - started) / (STEPS - 1)

    def size(tensors: Any) -> int:
        return sum(own_rows(tensor).numel() * tensor.element_size() for tensor in tensors)

    states = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    made = {
        "weights": size(model.parameters()),
        "gradients": size(p.grad for p in trained),
        "optimizer": size(states),
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    team.leave()
    return made


def started(strategy: str, way: str, processes: int) -> dict[str, float]:
    """The facts of the process that keeps most."""
    own = [sys.executable, str(Path(__file__)), "--part", f"{strategy},{way}"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = own if processes == 1 else [*torchrun, *own[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    facts = [json.loads(part) for part in re.findall(r"\{[^{}]*\}", done.stdout)]
    return {name: max(fact[name] for fact in facts) for name in facts[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        print(json.dumps(measured(*chosen.part.split(","))), flush=True)
        return
    print("| trained | processes | weights | gradients | optimizer | all | ratio | s a step | peak of the process |")
    print("|---|---|---|---|---|---|---|---|---|")
    for strategy in ("full", "lora"):
        base = 0.0
        for way, processes in (("whole", 1), ("whole", chosen.processes), ("sharded", chosen.processes)):
            facts = started(strategy, way, processes)
            kept = facts["weights"] + facts["gradients"] + facts["optimizer"]
            base = base or kept
            parts = " | ".join(f"{facts[name] / 1e6:.1f} MB" for name in ("weights", "gradients", "optimizer"))
            shown = f"{kept / 1e6:.1f} MB | {kept / base:.2f} | {facts['seconds']:.2f} | {facts['peak'] / 1e6:.0f} MB"
            print(f"| {strategy} | {processes}, {way} | {parts} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
