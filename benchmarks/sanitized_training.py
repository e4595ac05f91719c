"""Fine-tuning on rewritten text, with and without sanitization-aware pretraining (Yue et al. 2021, Table 3).

A small BERT of our own (2 layers, width 128, 4,000 public word pieces) is pre-trained on WikiText-2 (public), then
pre-trained further for as many steps, either on the text as it is ("plain") or with contexts rewritten by SanText and
original targets ("aware"). Both are fine-tuned on sentences of SST-2 rewritten by SanText at the same epsilon, and
tested on rewritten sentences of the development set. The paper starts from a BERT of 110 million weights, trains on 600
million words, and gains 1 to 2 points.

    python benchmarks/sanitized_training.py --steps 150 --rows 4000 --seeds 2
"""

from __future__ import annotations

import copy
import tempfile
import time
from pathlib import Path
from typing import Any

from measure import Report, arguments_parser, say
from vocabulary import accuracy, sst2, wikitext

VECTORS, WORDS = "default", 5000


def public_tokenizer(lines: list[str]) -> Any:
    """Word pieces of public text: a histogram without noise serves as the list of words."""
    import numpy as np

    from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
    from tacit.training.vocabulary import Contribution, WordHistogram, build_tokenizer
    from tacit.training.vocabulary.histogram import count_words, units_of

    counts = count_words(units_of(lines, None, None, lowercase=True), Contribution(10_000, "one"))
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:20_000]
    none = Guarantee(
        notion=Notion.NONE, epsilon=float("inf"), unit=Unit.RECORD, adjacency=Adjacency.ADD_REMOVE,
        mechanism="counting", void="the text is public",
    )  # fmt: skip
    return build_tokenizer(WordHistogram(frequent, np.array([counts[w] for w in frequent]), none), size=4000)


def run(task: Any, model: Any, tokenizer: Any, rows: Any, *, steps: int, batch: int, rate: float, seed: int) -> Any:
    """Plain training; returns the run, whose model is trained."""
    from tacit.training.plan import TrainingPlan
    from tacit.training.run import TrainingRun, TrainingSettings

    plan = TrainingPlan(len(rows), batch, steps, 0.0, 0.0, private=False)
    settings = TrainingSettings(learning_rate=rate, physical=batch * 2, checkpoint_every=10**6)
    with tempfile.TemporaryDirectory() as place:
        made = TrainingRun(task, model, tokenizer, rows, plan, settings, Path(place) / "run", seed)
        made.run()
    return made


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--epsilon", type=float, default=3.0, help="of one token, with 50-dimensional GloVe vectors")
    parser.add_argument("--steps", type=int, default=150, help="steps of each of the three pretrainings")
    parser.add_argument("--rows", type=int, default=4000, help="sentences to fine-tune on")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    import torch
    import transformers

    from tacit.catalog import build
    from tacit.noise.source import Source
    from tacit.training.tasks import Classification, MaskedLanguage, SanitizedMasking, sanitized_rows

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    report = Report("sanitized_training")
    lines = [line for line in wikitext() if not line.startswith("=")][:8000]
    tokenizer = public_tokenizer(lines)
    mechanism = build("santext", {"epsilon": given.epsilon, "vectors": VECTORS, "limit": WORDS, "seed": 1})
    rows = sst2("train.tsv.gz")[: 3 * given.rows : 3]
    held_out = sst2("dev.tsv")
    rewritten = [
        [
            {**row, "text": text}
            for row, text in zip(part, mechanism.rewrite([r["text"] for r in part]).texts, strict=True)
        ]
        for part in (rows, held_out)
    ]
    before, after = (part[0]["text"] for part in (rows, rewritten[0]))
    say(f"{before!r} -> {after!r}")
    public = sanitized_rows(lines, mechanism, Source.from_test_seed(1))
    kept = sum(
        a == b for row in public for a, b in zip(row["text"].split("\n"), row["sanitized"].split("\n"), strict=True)
    ) / sum(row["text"].count("\n") + 1 for row in public)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,
        max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    shape = {"steps": given.steps, "batch": 64, "rate": 1e-3}
    plain, aware = MaskedLanguage(length=32), SanitizedMasking(length=32)
    texts = [{"text": line} for line in lines]
    table, facts = [], {}
    scores: dict[str, list[float]] = {"plain": [], "aware": [], "plain, texts not rewritten": []}
    started = time.process_time()
    for seed in range(given.seeds):
        torch.manual_seed(seed)
        first = run(plain, transformers.BertForMaskedLM(config), tokenizer, texts, seed=seed, **shape).model
        bodies = {
            "plain": run(plain, copy.deepcopy(first), tokenizer, texts, seed=seed + 100, **shape).model.bert,
            "aware": run(aware, copy.deepcopy(first), tokenizer, public, seed=seed + 100, **shape).model.bert,
        }
        for name in scores:
            data, test = (rows, held_out) if "not rewritten" in name else rewritten
            task = Classification(length=48)
            task.learn(data)
            torch.manual_seed(seed)
            model = transformers.BertForSequenceClassification(
                transformers.BertConfig(**{**config.to_dict(), **task.model_options()})
            )
            model.bert.load_state_dict(bodies[name.split(",")[0]].state_dict(), strict=False)
            steps = 3 * len(data) // 64
            tuned = run(task, model, tokenizer, data, steps=steps, batch=64, rate=5e-4, seed=seed)
            scores[name].append(accuracy(tuned, test))
            say(f"{name}, seed {seed}: {scores[name][-1]:.3f}")
    for name, values in scores.items():
        table.append([name, f"{sum(values) / len(values):.3f}", ", ".join(f"{v:.3f}" for v in values)])
        facts[name] = values
    columns = ["pretraining", "accuracy", "seeds"]
    report.table(f"SST-2, {len(rows):,} sentences rewritten by SanText at epsilon {given.epsilon:g}", columns, table)
    report.notes += [
        f"{kept:.0%} of the public words stay as they are; three pretrainings of {given.steps} steps for each seed",
        f"{time.process_time() - started:.0f} CPU s",
    ]
    report.facts["accuracy"] = facts
    report.show(given.json)


if __name__ == "__main__":
    main()
