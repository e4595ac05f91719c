"""Words for the parts of a guarantee on a card, for a reader who decides about the data and wrote no code.

The JSON form of a card keeps the names and values of the code; these are for its readers. A setting that is not listed
here is shown by its own name, with `_` as a space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tacit.guarantee import Guarantee, Model, Notion, Unit
from tacit.rounding import exact, rounded_down, rounded_up

UNIT_NAMES: Mapping[Unit, str] = {Unit.TOKEN: "word"}
"""Units whose name in the code is not the word for people."""

UNITS: Mapping[Unit, str] = {
    Unit.TOKEN: "one word, number or punctuation mark (a token)",
    Unit.SENTENCE: "one sentence",
    Unit.DOCUMENT: "one document (a whole text)",
    Unit.RECORD: "one record (a row of the data)",
    Unit.USER: "one user (all rows of a person)",
    Unit.NODE: "one node of the graph",
    Unit.SUBGRAPH: "one subgraph (a group of nodes)",
}

NOTIONS: Mapping[Notion, str] = {
    Notion.METRIC: "the closer two words are, the better each hides the other",
    Notion.UTILITY_OPTIMIZED_METRIC: "sensitive words are protected, common words are not",
}

MODELS: Mapping[Model, str] = {
    Model.LOCAL: "to each text on its own (local model)",
    Model.CENTRAL: "by a trusted holder of all the data (central model)",
}

BY_VALUE: Mapping[tuple[str, str], tuple[str, str]] = {
    ("calibration", "exact"): ("use of epsilon", "all of it: exact over this vocabulary"),
    ("calibration", "textbook"): ("use of epsilon", "as in the textbook, which leaves a part of it unused"),
    ("tags", "rules"): ("tags of words", "by a public rule: function words by name, others by their ending"),
    ("metric", "hyperbolic"): ("distance of words", "hyperbolic"),
    ("unknown", "spelling"): (
        "words not in the vocabulary",
        "treated as a vocabulary word with the same beginning or end; where there is none, as one picked by a hash",
    ),
    ("unknown", "hash"): ("words not in the vocabulary", "treated as a vocabulary word picked by a hash"),
    ("punctuation", "rewrite"): ("punctuation", "rewritten like words"),
    ("punctuation", "drop"): ("punctuation", "left out"),
    ("punctuation", "keep"): ("punctuation", "copied as it is, not hidden"),
    ("joining", "natural"): ("spaces in the output", "as in ordinary writing; those of the original are not kept"),
    ("joining", "spaces"): ("spaces in the output", "one between any two words or marks"),
    ("mapping", "nearest"): ("released word", "the one nearest to the noisy vector"),
    ("mapping", "first-or-second"): ("released word", "one of those nearest to the noisy vector"),
    ("approximate", "False"): ("search for that word", "exact"),
    ("approximate", "True"): ("search for that word", "approximate (no influence on privacy)"),
    ("bounding", "none"): ("vectors before the noise", "as they are"),
    ("calibrated", "True"): ("noise", "scaled to the sensitivity, so that epsilon is the one asked for"),
    ("calibrated", "False"): ("noise", "not scaled to the sensitivity, which is counted in epsilon instead"),
    ("mode", "anchored"): ("variant", "anchored: repaired, so that the promise is proven"),
    ("mode", "published"): ("variant", "as published: its promise does not hold"),
    ("mode", "real-part"): ("variant", "real part: outside the range where the noise is defined"),
    ("noise", "gaussian"): ("kind of noise", "Gaussian"),
    ("noise", "laplace"): ("kind of noise", "Laplace"),
    ("noise", "none"): ("kind of noise", "none"),
    ("norm", "l1"): ("norm", "sum of the sizes (l1)"),
    ("norm", "l2"): ("norm", "Euclidean length (l2)"),
    ("bound", "l1"): ("numbers of a text", "cut so that their sizes add up to at most C (l1)"),
    ("bound", "l2"): ("numbers of a text", "cut to a Euclidean length of at most C (l2)"),
    ("bound", "value"): ("numbers of a text", "each cut to between -C and C (value)"),
    ("decode", "center"): ("released sentence", "the central one of the cell that was drawn"),
    ("decode", "random"): ("released sentence", "a random one of the cell that was drawn"),
    ("decode", "language-model"): ("released sentence", "written by a language model from the cell that was drawn"),
    ("weighting", "one"): ("weight of a word", "1"),
    ("weighting", "shared"): ("weight of a word", "1 / the root of how many different words its owner has"),
    ("length", "hidden"): ("length of a text", "hidden"),
    ("length", "visible"): ("length of a text", "not hidden"),
    ("context", "pair"): (
        "model reads",
        "what is released so far with the rest of the text, beside the whole text",
    ),
    ("context", "single"): ("model reads", "what is released so far with the rest of the text"),
    ("base", "model"): ("each token is drawn from", "what the model writes without the text, tilted towards the text"),
    ("base", "uniform"): ("each token is drawn from", "the whole vocabulary, likely words preferred"),
    ("way", "nearest"): ("inside the band", "the law nearest to that of the model of a shard"),
    ("way", "mixed"): ("inside the band", "a mixture of the model of a shard with the public model"),
}
"""The line of a setting that has this value."""

BY_NAME: Mapping[str, tuple[str, str]] = {
    "vectors": ("word vectors", "{}"),
    "device": ("computed on", "{}"),
    "delta": ("delta of one text", "{}"),
    "p": ("common words", "each is rewritten with probability {}"),
    "common epsilon": ("epsilon of a common word", "{}"),
    "exponent of a sensitive word against any other": (
        "a sensitive word against any other",
        "odds change by at most e^({})",
    ),
    "least": ("words that share a tag", "{} or more"),
    "tags": ("tags of words", "from the public list {}"),
    "best guess": ("the best attacker guesses", "{}, each being equally likely, from one output"),
    "beta": ("beta", "{} (bounds the chance of a word far away; sets how far words count as near)"),
    "bits": ("code of a word", "{} bits"),
    "set size": ("words that share a set", "{} or more"),
    "t": ("preference for the second word", "{} (0: always the nearest, 1: always the second)"),
    "neighbors": ("nearest words to choose among", "{}"),
    "lam": ("shape of the noise", "lambda {} (0: round, 1: like the cloud of all words)"),
    "bounding": ("vectors before the noise", "bounded by {}"),
    "metric epsilon": ("epsilon as published", "{}"),
    "Gumbel scale": ("scale of the noise", "{}"),
    "largest distance": ("largest distance of two words", "{}"),
    "anchor": ("anchor", "with probability {} the word is drawn uniformly"),
    "model": ("model used", "{}"),
    "variant": ("variant of the model", "{}"),
    "beams": ("candidates while writing", "{} (no influence on privacy)"),
    "shortest": ("shortest output", "{} tokens before an end is likely"),
    "C": ("C", "{}"),
    "clip": ("C as given", "{}"),
    "positions": ("positions of a text", "{}"),
    "length": ("positions as given", "{}"),
    "released numbers": ("how many numbers", "{}"),
    "l1 sensitivity": ("largest difference of two texts", "{} (l1)"),
    "l2 sensitivity": ("largest difference of two texts", "{} (l2)"),
    "noise scale": ("scale of the noise", "{}"),
    "k": ("cells of the codebook (k)", "{}"),
    "s": ("cells near a text (s)", "{}"),
    "candidates": ("public sentences to choose among", "{}"),
    "directions": ("public directions in which the depth is measured", "{}"),
    "dimensions": ("directions of public text that are kept", "{}"),
    "form": ("form of the noise", "{}"),
    "symbols": ("sentences released for a text (symbols)", "{}"),
    "near": ("drawn from a cell near the text", "{}"),
    "labels": ("public labels", "{}"),
    "language model": ("language model", "{}"),
    "input tokens": ("tokens read of a text", "{} at most"),
    "tokens": ("tokens released for a text", "{} at most"),
    "vocabulary": ("tokens to choose from", "{}"),
    "shards": ("models of disjoint shards", "{}"),
    "tokens in all": ("tokens that were paid for", "{}"),
    "up": ("a shard raises a probability", "by at most e^{}"),
    "down": ("a shard lowers a probability", "by at most e^-{}"),
    "epsilon of a token": ("epsilon of one token", "{}"),
    "interval": ("log-probabilities are clipped to", "{}"),
    "tilt": ("the text changes a token's weight by", "{}"),
    "noise multiplier": ("noise", "{} times the clipping bound (noise multiplier)"),
    "sampling rate": ("share of the data in a step", "{}"),
    "steps": ("steps of training", "{}"),
    "rounds": ("rounds of training", "{}"),
    "clipping": ("clipping of gradients", "{}"),
    "bound": ("clipping bound", "{}"),
    "gradients": ("gradients of single examples", "{}"),
    "planned cohort": ("users in a round, as planned", "{}"),
}
"""The line of a setting with any other value, which goes where the braces stand."""

AT_MOST = frozenset({"delta", "common epsilon", "C", "clip", "l1 sensitivity", "l2 sensitivity", "largest distance"})
AT_LEAST = frozenset({"noise scale", "noise multiplier"})
"""Settings that a promise rests on: shown no smaller than they are, or, for noise, no larger."""

_FINGERPRINT = re.compile(r"(.+) \(([0-9a-f]{12})\)")


def unit_name(unit: Unit) -> str:
    """The name of one unit in a sentence: a token is a word."""
    return UNIT_NAMES.get(unit, unit.value)


def notion_text(notion: Notion, unit: Unit = Unit.TOKEN) -> str:
    """The name of a notion and, where the name does not say it, what it means."""
    if notion is Notion.METRIC and unit is not Unit.TOKEN:
        return f"{notion.label}: the closer two {unit_name(unit)}s are, the better each hides the other"
    return f"{notion.label}: {NOTIONS[notion]}" if notion in NOTIONS else notion.label


def promise_text(g: Guarantee, shown: Callable[[float], str] = exact) -> str:
    """A guarantee in half a line, with its numbers as they are, or as `shown` writes them."""
    if not g.is_private:
        return "no guarantee"
    distance = " and unit of distance" if g.metric is not None else ""
    parts = [g.notion.label, f"epsilon {shown(g.epsilon)} per {unit_name(g.unit)}{distance}"]
    parts += [f"constant {shown(g.offset)}"] if g.offset else []
    parts += [f"delta {shown(g.delta)}"] if g.delta else []
    return ", ".join(parts)


def domain_text(domain: str) -> str:
    """The public sets that a promise refers to, and what the code behind them is for."""
    match = _FINGERPRINT.fullmatch(domain)
    if match is None:
        return domain
    return f"{match[1]}, fingerprint {match[2]} (releases add up only if theirs is the same)"


def setting_line(name: str, value: object) -> tuple[str, str]:
    """Label and value of one setting of a mechanism."""
    name = name.replace("_", " ")
    if (name, str(value)) in BY_VALUE:
        return BY_VALUE[name, str(value)]
    label, shape = BY_NAME.get(name, (name, "{}"))
    if isinstance(value, float) and (name in AT_MOST or name in AT_LEAST):
        return label, shape.format(rounded_up(value) if name in AT_MOST else rounded_down(value))
    return label, shape.format(_value_text(value))


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "; ".join(": ".join(setting_line(str(name), item)) for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
