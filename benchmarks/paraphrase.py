"""Private paraphrase with SmolLM2: speed in batches and one by one, closeness to the law of the model, samples.

    OMP_NUM_THREADS=1 python benchmarks/paraphrase.py [--json PATH] [--quick]

The baseline of the speed is the same program with one text at a time. The baseline of the closeness is the model
itself: the table gives the mean cross-entropy (nats per token) of the law that is drawn from, seen from the law of
the model, over contexts of public sentences; the first line is the entropy of the model, the least that is possible.
"textbook" is the published mechanism with its published price, temperature 2 * width / epsilon. All texts are public.

The model is unpacked into Tacit's cache folder at the first use, which takes a minute.
"""

from __future__ import annotations

import time

import numpy as np

from measure import Report, Stopwatch, arguments_parser, say, seconds
from tacit.documents.language_models import PUBLIC_SENTENCES, load_generator
from tacit.documents.paraphrase import KNOWN_INTERVALS, Paraphrase
from tacit.documents.paraphrase_loss import normalized, tilted_weights, uniform_weights
from tacit.noise.choice import integer_weights, probabilities
from tacit.noise.source import Source

SAMPLES = (
    "The flight from Boston to Denver was delayed by four hours because of the snow.",
    "My knee has hurt since I fell off my bicycle in March, and the new tablets do not help.",
    "Please book a table for six people at an Italian restaurant tomorrow evening.",
)
TOKENS = 24
ROOM = 32


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer texts and contexts")
    parser.add_argument("--only", choices=("speed", "closeness", "samples"), help="one part of it")
    options = parser.parse_args()
    report = Report("paraphrase")
    watch = Stopwatch()
    say("loading SmolLM2 ...")
    with watch.lap("load"):
        load_generator("smollm2")
    if options.only in (None, "speed"):
        speed(report, rows=8 if options.quick else 32, tokens=4 if options.quick else TOKENS)
    if options.only in (None, "closeness"):
        closeness(report, sentences=4 if options.quick else 16, steps=4 if options.quick else 8)
    if options.only in (None, "samples"):
        samples(report)
    report.facts["load seconds"] = watch.as_facts()["load"]
    report.notes.append(f"loading took {seconds(watch.laps['load'].wall)} s")
    report.show(options.json)


def speed(report: Report, rows: int, tokens: int) -> None:
    table, facts = [], {}
    for base in ("model", "uniform"):
        mechanism = Paraphrase(epsilon=15.0 * tokens, tokens=tokens, base=base, stop="", input_tokens=ROOM)
        mechanism.rewrite_batch(PUBLIC_SENTENCES[:1], Source.from_os())  # what is computed once is not counted
        rates = {}
        for batch, texts in ((1, PUBLIC_SENTENCES[:2]), (rows, (PUBLIC_SENTENCES * 2)[:rows])):
            say(f"speed, base {base}, batch {batch} ...")
            mechanism.batch_size = batch
            mechanism.prepare()
            cpu, wall = time.process_time(), time.perf_counter()
            mechanism.rewrite_texts(texts, Source.from_os())
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            rates[batch] = len(texts) * tokens / cpu
            table.append([base, f"{batch}", f"{rates[batch]:.1f}", f"{len(texts) * tokens / wall:.1f}",
                          f"{rates[batch] / rates[1]:.1f} x"])  # fmt: skip
        facts[base] = rates
    columns = ("base", "texts at a time", "tokens per CPU second", "tokens per second", "against one by one")
    report.table(f"Speed, {tokens} tokens written for each text, room for {ROOM} tokens to read", columns, table)
    report.facts["tokens per CPU second"] = facts


def closeness(report: Report, sentences: int, steps: int) -> None:
    say("closeness ...")
    mechanism = Paraphrase(epsilon=1.0)
    model, frame, temperature = mechanism.language_model, mechanism.frame, mechanism.temperature
    generator = np.random.default_rng(0)
    with_text, without = [], []
    for start in range(0, sentences, 8):
        texts = PUBLIC_SENTENCES[start : start + 8]
        running, scores = model.begin(texts, frame, 32)
        blank, reference = model.begin_blank(len(texts), frame, 32)
        for _ in range(steps):
            with_text.append(scores)
            without.append(reference)
            written = model.support[(scores / temperature + generator.gumbel(size=scores.shape)).argmax(axis=1)]
            scores, reference = model.extend(running, written), model.extend(blank, written)
    scores, reference = np.concatenate(with_text), np.concatenate(without)
    own = normalized(scores, temperature)
    interval = KNOWN_INTERVALS["smollm2", mechanism.prompt]

    def price(weights: np.ndarray) -> float:
        return float(-(np.exp(own) * np.log(probabilities(weights))).sum(axis=1).mean())

    rows = [["the model itself", *[f"{float(-(np.exp(own) * own).sum(axis=1).mean()):.2f}"] * 3]]
    facts = {"itself": rows[0][1]}
    for epsilon in (1.0, 3.0, 6.0, 10.0, 15.0, 20.0, 28.0):
        clipped = np.clip(scores, interval.low, interval.high)
        exponents = (clipped.max(axis=1, keepdims=True) - clipped) * (epsilon / (2.0 * interval.width))
        found = [
            price(integer_weights(exponents)),
            price(uniform_weights(scores, interval, epsilon)),
            price(tilted_weights(scores, reference, temperature, epsilon)),
        ]
        rows.append([f"epsilon {epsilon:g} a token", *(f"{value:.2f}" for value in found)])
        facts[f"{epsilon:g}"] = dict(zip(("textbook", "uniform", "model"), found, strict=True))
    columns = ("nats per token", "textbook", "base uniform", "base model")
    report.table(f"How close the private law is, {len(scores)} contexts of public sentences", columns, rows)
    report.facts["cross-entropy"] = facts


def samples(report: Report) -> None:
    rows, facts = [], {}
    for base in ("auto", "uniform"):
        for epsilon in (50.0, 200.0, 300.0, 400.0, 1000.0, 5000.0):
            say(f"samples, base {base}, epsilon {epsilon:g} ...")
            release = Paraphrase(epsilon=epsilon, tokens=TOKENS, base=base).rewrite(SAMPLES)
            promised = f"{release.guarantee.epsilon:.4g}"
            rows += [
                [f"{epsilon:g}, {base}" if not i else "", promised if not i else "", text]
                for i, text in enumerate(release.texts)
            ]
            facts[f"{base} {epsilon:g}"] = release.texts
    report.table(
        f"Samples: {TOKENS} tokens for each of: {' | '.join(SAMPLES)}", ("epsilon, base", "on the card", "output"), rows
    )
    report.facts["samples"] = facts


if __name__ == "__main__":
    main()
