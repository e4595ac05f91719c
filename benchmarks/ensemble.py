"""Private inference: how likely held-out private texts are under an ensemble in its band, beside the public model.

    nice python benchmarks/ensemble.py FOLDER              # about 20 minutes of one core

Data: questions of customers to a bank (banking77): 1,200 to train on, in 24 shards of about 50, and 40 that no shard
has seen. One LoRA of SmolLM2-135M for each shard, settings not tuned. Printed are perplexities per word piece of

    the public model      without any private text
    the mean of shards    without any band: what the ensemble knows, and no promise
    a band                'nearest' and 'mixed', with the epsilon of one record for 1,000 tokens of 24 shards, and of
                          240 shards that would answer alike

and how many tokens a second `tacit predict` draws, beside the public model alone. These perplexities are a private
view: they read private texts, and nobody has paid for them. The folder keeps the ensemble, so that a stopped run goes
on.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from corpus import data_rows
from measure import Report, Stopwatch, say
from tacit.guarantee import Unit
from tacit.jobs.ensemble import train_ensemble
from tacit.jobs.training.ensemble_answers import opened
from tacit.noise.source import Source, public_generator
from tacit.training.ensemble.asking import Ensemble
from tacit.training.ensemble.band import TOTAL, Band, public_weights
from tacit.training.ensemble.folder import EnsembleFolder
from tacit.training.ensemble.promise import TokenBudget

SHARDS, TRAINED, TESTED, TOKENS, MANY = 24, 1_200, 40, 1_000, 240
HALVES = (0.125, 0.25, 0.5, 1.0)
WAYS = ("nearest", "mixed")


def questions(given: argparse.Namespace) -> tuple[list[str], list[str]]:
    texts = [row["text"] for row in data_rows("banking77/train.tsv")]
    order = public_generator(0).permutation(len(texts))
    chosen = [texts[i] for i in order[: given.rows + given.tested]]
    return chosen[: given.rows], chosen[given.rows :]


def trained(given: argparse.Namespace, texts: list[str]) -> Ensemble:
    folder = EnsembleFolder(given.folder / "ensemble")
    if not (folder.path / "ensemble.json").exists():
        train_ensemble(
            texts, output=folder.path, shards=given.shards, model=given.model, length=32, epochs=2, learning_rate=1e-3,
            dataset="banking77", resume=(folder.path / "private").exists(),
            progress=lambda what, done, total: say(f"{what}: {done} of {total}") if done % 10 == 0 else None,
        )  # fmt: skip
    return opened(folder)


def losses(ensemble: Ensemble, texts: list[str]) -> dict[str, float]:
    """The mean loss of a word piece under every law, by its name."""
    shards = ensemble.settings.shards
    sums: dict[str, float] = {}
    pieces = 0
    places = {int(token): place for place, token in enumerate(ensemble.public.support)}
    for number, text in enumerate(texts):
        ids = ensemble.network.encoded(text, ensemble.settings.length)
        public, laws = ensemble.laws(ids)
        for position, token in enumerate(ids[1:]):
            place = places[token]
            chances = {
                "public": public[position, place],
                "mean": float(np.mean([law[position, place] for law in laws])),
            }
            weights = public_weights(public[position])
            rows = np.array([law[position] for law in laws])
            for way in WAYS:
                for half in HALVES:
                    mixed = Band(shards, half, half, way).mixture(weights, rows)
                    chances[f"{way} {half}"] = int(mixed[place]) / (shards * TOTAL)
            for name, chance in chances.items():
                sums[name] = sums.get(name, 0.0) - math.log(chance)
            pieces += 1
        say(f"measured {number + 1} of {len(texts)} texts")
    return {name: total / pieces for name, total in sums.items()}


def speed(ensemble: Ensemble, tokens: int) -> dict[str, float]:
    """Tokens a CPU second of answers, and of the public model alone with the same kept attention."""
    watch = Stopwatch()
    prompt = ensemble.prompt("I would like to", tokens, 32)
    drawn = 0
    for number in range(3):
        counted = [0]
        with watch.lap("ensemble"):
            ensemble.answer(
                prompt, band=Band(ensemble.settings.shards), tokens=tokens, temperature=1.0,
                source=Source.from_test_seed(number), drawn=lambda count, c=counted: c.__setitem__(0, count),
            )  # fmt: skip
        drawn += counted[0]
    from tacit.training.ensemble.asking import _Reading

    reading, ids = _Reading(), list(prompt)
    with watch.lap("public"):
        for _ in range(drawn):
            law = ensemble._law(ensemble.public.model, reading, ids, 1.0)
            ids.append(int(ensemble.public.support[int(law.argmax())]))
    return {"ensemble": drawn / watch.cpu("ensemble"), "public": drawn / watch.cpu("public")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="keeps the ensemble; private")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--shards", type=int, default=SHARDS)
    parser.add_argument("--rows", type=int, default=TRAINED)
    parser.add_argument("--tested", type=int, default=TESTED)
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all numbers to this file as well")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    train, test = questions(given)
    ensemble = trained(given, train)
    measured = losses(ensemble, test)
    rows: list[list[str]] = [[name, f"{math.exp(measured[name]):.2f}", "-", "-"] for name in ("public", "mean")]
    for way in WAYS:
        for half in HALVES:
            costs = [
                TokenBudget(Band(count, half, half), TOKENS, 1e-6, Unit.RECORD).cost()[0]
                for count in (given.shards, MANY)
            ]
            perplexity = math.exp(measured[f"{way} {half}"])
            rows.append([f"{way}, u = d = {half:g}", f"{perplexity:.2f}", *(f"{cost:.2f}" for cost in costs)])
    rates = speed(ensemble, 30)
    report = Report("ensemble")
    report.table(
        f"Perplexity of {given.tested} held-out texts, {given.shards} shards of {given.rows:,} rows (a private view)",
        ("law", "perplexity", f"epsilon of {TOKENS:,} tokens", f"with {MANY} shards"),
        rows,
    )
    report.table(
        "Tokens a CPU second", ("of the ensemble", "of the public model alone", "ratio"),
        [[f"{rates['ensemble']:.1f}", f"{rates['public']:.1f}", f"{rates['ensemble'] / rates['public']:.2f}"]],
    )  # fmt: skip
    facts: dict[str, Any] = {"loss": measured, "tokens a second": rates}
    report.facts.update(facts)
    report.show(given.json)


if __name__ == "__main__":
    main()
