"""Draws the pictures of docs/choosing-epsilon.md from the mechanisms themselves, and prints the numbers behind them.

    python examples/choosing_epsilon.py docs/images

Nothing here is simulated: the curves are formulas of the definition, exact laws that the mechanisms draw from, and
numbers on their cards.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from assistant_requests import requests
from wordfreq import word_frequency

import tacit
from tacit.card import strength
from tacit.documents.codebook_public import load_codebook
from tacit.noise.source import public_generator
from tacit.report.plot import COLORS, axes, figure
from tacit.text.tokens import split

HERE = Path(__file__).parent
METRIC_EPSILONS = (0.5, 1, 2, 3, 4, 6, 8, 10, 14, 20)
PLAIN_EPSILONS = (0.1, 0.5, 1, 2, 3, 4, 6, 8, 10)
VERDICTS = (("strong", np.log(3)), ("moderate", 4.0), ("weak", 10.0))


def posterior(prior: Any, epsilon: float) -> Any:
    """The largest belief that is possible after `prior`: Bayes' rule with the odds times e^epsilon."""
    return prior * np.exp(epsilon) / (prior * np.exp(epsilon) + 1 - prior)


def draw_posterior() -> Any:
    canvas, area = axes()
    priors = np.linspace(0, 1, 201)
    for epsilon in (0.5, np.log(3), 2, 4, 8):
        area.plot(priors, posterior(priors, epsilon), label=f"epsilon {epsilon:.3g}")
    area.plot(priors, priors, color="#888888", linestyle=":", label="learns nothing")
    area.set_xlabel("belief before seeing the release")
    area.set_ylabel("largest possible belief after")
    area.legend(frameon=False, loc="lower right")
    print("largest belief of an attacker who gave it a chance of 1 in 100 before")
    for epsilon in (0.5, 1, float(np.log(3)), 2, 4, 8, 10):
        print(f"  epsilon {epsilon:<6.3g} {posterior(0.01, epsilon):.3f}")
    return figure(canvas, "What an attacker can believe afterwards", "Posterior over prior for five epsilons.")


def words_of_a_text(count: int) -> list[str]:
    """Words as often as they stand in the example requests: a public choice, the same every time."""
    counted = Counter(word for row in requests() for word in split(row["text"]))
    words, counts = zip(*sorted(counted.items()), strict=True)
    chances = np.array(counts) / sum(counts)
    return list(public_generator().choice(words, size=count, p=chances))


def stays(mechanism: Any, words: Sequence[str]) -> float:
    """The mean probability that a word comes out as it went in; a word outside the vocabulary never does."""
    distinct = Counter(words)
    total = 0.0
    for word, count in distinct.items():
        place = mechanism.lexicon.id(word)
        if mechanism.vocabulary[place] == word:
            total += count * mechanism.distribution(word)[place]
    return total / len(words)


def draw_words() -> Any:
    """One panel for each mechanism: their epsilons mean different things and must not share an axis."""
    words = words_of_a_text(300)
    canvas, area = axes(9.0, 3.4)
    area.remove()
    panels = canvas.subplots(1, 3, sharey=True)
    print("probability that a word of a request stays as it is")
    for panel, color, (name, epsilons, label) in zip(
        panels,
        COLORS,
        (
            ("santext", METRIC_EPSILONS, "per unit of distance, all words"),
            ("santext+", METRIC_EPSILONS, "per unit of distance, rare words"),
            ("custext", PLAIN_EPSILONS, "plain, within sets of 20 words"),
        ),
        strict=False,
    ):
        curve = [stays(tacit.build(name, {"epsilon": epsilon}), words) for epsilon in epsilons]
        panel.plot(epsilons, curve, marker="o", markersize=3, color=color)
        panel.set_title(name, fontsize=11)
        panel.set_xlabel(f"epsilon ({label})", fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.set_ylim(0, 1)
        shown = "  ".join(f"{epsilon:g}: {value:.2f}" for epsilon, value in zip(epsilons, curve, strict=True))
        print(f"  {name:<9} {shown}")
    panels[0].set_ylabel("probability that a word stays")
    return figure(canvas, "How often a word stays", "Share of unchanged words over epsilon, one panel per mechanism.")


def best_guess(law: Any, prior: Any) -> float:
    """How often the best possible attacker names the word: he knows the law, the prior and the output (Bayes)."""
    return float((prior[:, None] * law).max(axis=0).sum())


def draw_attacker(words: int = 2_000) -> Any:
    mechanism = tacit.SanText(epsilon=1.0, limit=words)
    vocabulary = list(mechanism.vocabulary)
    everything = np.arange(words)
    frequency = np.array([word_frequency(word, "en") for word in vocabulary]) + 1e-9
    priors = {
        "any of 2,000 words alike": np.full(words, 1 / words),
        "as frequent as in English": frequency / frequency.sum(),
    }
    laws = {epsilon: mechanism.set_params(epsilon=epsilon).laws(everything) for epsilon in METRIC_EPSILONS}
    canvas, area = axes()
    print(f"how often the best possible attacker names the word (SanText, {words:,} words)")
    for (name, prior), color in zip(priors.items(), COLORS, strict=False):
        curve = [best_guess(laws[epsilon], prior) for epsilon in METRIC_EPSILONS]
        area.plot(METRIC_EPSILONS, curve, marker="o", markersize=3, color=color, label=name)
        area.axhline(prior.max(), color=color, linestyle=":", linewidth=1)
        shown = "  ".join(f"{epsilon:g}: {value:.3f}" for epsilon, value in zip(METRIC_EPSILONS, curve, strict=True))
        print(f"  {name:<26} before: {prior.max():.4f}   {shown}")
    area.set_ylim(0, 1)
    area.set_xlabel("epsilon per word and unit of distance")
    area.set_ylabel("word guessed right")
    area.legend(frameon=False, loc="lower right", title="dotted: without the release", title_fontsize="small")
    return figure(canvas, "The best possible attacker", "Exact success of the Bayes attacker over epsilon.")


def draw_lengths() -> Any:
    santext = tacit.SanText(epsilon=2.0).guarantee()
    custext = tacit.build("custext", {"epsilon": 1.0}).guarantee()
    codebook = tacit.build("codebook", {"epsilon": 5.0}).guarantee()
    curves = {
        "SanText 2, typical distances": lambda n: santext.for_document(n).exponent(santext.metric.typical * n),
        "CusText 1, within the sets": lambda n: custext.for_document(n).exponent(),
        "codebook 5": lambda n: codebook.exponent(),
    }
    canvas, area = axes()
    lengths = [int(n) for n in np.unique(np.logspace(0, 3, 40).astype(int))]
    print("exponent of a whole text (what the odds can change by, as a power of e)")
    for name, exponent in curves.items():
        area.plot(lengths, [exponent(n) for n in lengths], label=name)
        for n in (1, 20, 200):
            print(f"  {name:<30} {n:>4} tokens: {exponent(n):>9,.1f}  {strength(exponent(n)).partition(':')[0]}")
    for name, height in VERDICTS:
        area.axhline(height, color="#888888", linestyle=":", linewidth=1)
        area.annotate(name, (1000, height), xytext=(-44, -10), textcoords="offset points", fontsize=8, color="#666666")
    area.set_xscale("log")
    area.set_yscale("log")
    area.set_xlabel("tokens of the text")
    area.set_ylabel("exponent of the whole text")
    area.legend(frameon=False, loc="upper left")
    return figure(canvas, "What a text adds up to", "Exponent of a whole text over its length, log scales.")


def draw_codebook() -> Any:
    codebook = load_codebook("default")
    epsilons = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
    choices = [codebook.choose(epsilon) for epsilon in epsilons]
    chance = codebook.level(choices[0].k).chance()
    canvas, area = axes()
    area.plot(epsilons, [choice.similarity for choice in choices], marker="o", markersize=3, label="release and text")
    area.axhline(chance, color="#888888", linestyle=":", label="release and any other text")
    area.set_ylim(0, 1)
    area.set_xlabel("epsilon for the whole text")
    area.set_ylabel("expected similarity of meaning (cosine)")
    area.legend(frameon=False)
    print("codebook: expected similarity of a release to its text")
    for epsilon, choice in zip(epsilons, choices, strict=True):
        print(f"  epsilon {epsilon:<4g} {choice.similarity:.3f} (chance {chance:.3f})")
    return figure(canvas, "What the codebook keeps", "Expected cosine similarity over epsilon.")


PICTURES = {
    "epsilon-belief": draw_posterior,
    "epsilon-words": draw_words,
    "epsilon-attacker": draw_attacker,
    "epsilon-length": draw_lengths,
    "epsilon-codebook": draw_codebook,
}


def main(folder: str) -> None:
    for name, draw in PICTURES.items():
        (Path(folder) / f"{name}.svg").write_text(draw().svg, encoding="utf-8")
        print()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("say where the pictures go: python examples/choosing_epsilon.py docs/images")
    main(sys.argv[1])
