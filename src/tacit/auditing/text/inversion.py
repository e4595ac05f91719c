"""Inversion of words: which word stood where the release shows y?

Two attackers, both of whom see the release, position by position, and know the mechanism:

    nearest   the released word itself (for released vectors: the word with the nearest vector)
    Bayes     x(y) = argmax_x  prior(x) P(y | x),  the most probable word given y

P(y | x) is the exact law of the mechanism, the prior is public (word frequencies). For a mechanism that treats every
token on its own, no attacker who looks at one position and holds this prior can be right more often: the Bayes guess is
optimal, and its expected success under the prior is the posterior Bayes vulnerability  sum_y max_x prior(x) P(y | x)
(Alvim et al., The Science of Quantitative Information Flow, 2020, chapter 5). An attacker who also reads the context
can do better; `mask_inference` tries that.

One pass over the input words in blocks, with a running maximum for each output word: never a |V| x |V| array. Where a
mechanism has no closed form, its law is sampled; the guess is then only close to optimal, and the report says so.

The same pass gives P(x | x), hence how many words the mechanism leaves as they are. If a release has so many unchanged
words that the claimed law gives at least that many with a chance below `REFUTED_BELOW`, it was not made by that
mechanism with that epsilon. The chance is bounded, not approximated: exp(-n KL(q || p)) for the mean p of n independent
chances and a share q > p (Hoeffding 1963, theorem 1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.auditing.text import scale
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.text.scale import Success
from tacit.errors import BadInputError, NoGuaranteeError, require
from tacit.noise.source import Source
from tacit.progress import StepProgress
from tacit.report import Finding, Light, Section, Table
from tacit.text.sensitive import rarest_words
from tacit.text.tokens import CLITICS, is_punctuation, join, split
from tacit.words.base import BLOCK_CELLS, KEPT_PUNCTUATION, WordMechanism
from tacit.words.two_classes import TwoClassWords

SENSITIVE_SHARE = 0.9
REFUTED_BELOW = 1e-9
SAMPLED_WORDS = 5_000
SAMPLED_DRAWS = 40
MOST_UNKNOWN = 0.01
WORST = 20
UNCHANGED = "words that are not rewritten are recovered in"

# Shares of all tokens in WikiText-2 (train), cut by Tacit's rule: frequency lists have no marks and clitics.
MARKS = {
    ",": 0.0488, ".": 0.0381, '"': 0.0135, "-": 0.0101, "'s": 0.0067, "(": 0.0057, ")": 0.0057, "'": 0.0022,
    ";": 0.0020, ":": 0.0018, "--": 0.0006, "/": 0.0006, "%": 0.0004, "$": 0.0004, "...": 0.0004, "&": 0.0002,
    "!": 0.0002, "?": 0.0001, "n't": 0.0001, "'re": 0.0001, "'m": 0.0001, "'ve": 0.0001, "'ll": 0.0001, "'d": 0.0001,
}  # fmt: skip
OTHER_MARK = 1e-5


# The prior ----------------------------------------------------------------------------------------------------------


def frequency_prior(words: Sequence[str], *, language: str = "en") -> Floats:
    """Public word frequencies (wordfreq) over a vocabulary; every word keeps a positive chance."""
    wordfreq = require("wordfreq", extra="default", purpose="a public prior of words")
    known = wordfreq.get_frequency_dict(language)
    smallest = 1e-9
    weights = [
        MARKS.get(word, OTHER_MARK) if word in CLITICS or is_punctuation(word) else known.get(word, smallest)
        for word in words
    ]
    return normalized(np.array(weights))


def corpus_prior(words: Sequence[str], texts: Iterable[str]) -> Floats:
    """Counts of a public text over a vocabulary, with half a count for every word."""
    counts = Counter(token for text in texts for token in split(text))
    if not counts:
        raise BadInputError("no-words", "the public text for the prior is empty: give one with words in it")
    return normalized(np.array([counts[word] + 0.5 for word in words]))


def normalized(weights: Floats) -> Floats:
    total: Floats = weights / weights.sum()
    return total


# The posterior ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posterior:
    """What each output word y says about the input.

    guess           argmax_x prior(x) P(y|x)
    certainty       its posterior probability
    stays           P(x|x) of each word
    vulnerability   expected success of the guess under the prior (exact when `exact`)
    exact           from the closed form of the law, not from samples
    """

    guess: Ids
    certainty: Floats
    stays: Floats
    vulnerability: float
    exact: bool


def posterior(
    mechanism: WordMechanism, prior: Floats, *, seed: int = 0, progress: StepProgress | None = None
) -> Posterior:
    """The Bayes-optimal guess for every output word; sampled where the law has no closed form."""
    mechanism.prepare()
    try:
        mechanism.laws(np.array([0], dtype=np.int64))
    except NoGuaranteeError:
        return _sampled_posterior(mechanism, prior, seed, progress)
    words = len(prior)
    best, owner, total = np.zeros(words), np.arange(words, dtype=np.int64), np.zeros(words)
    stays = np.zeros(words)
    # The likeliest words first: later blocks then rarely win, and ties go to the likelier word.
    order = np.argsort(-prior, kind="stable")
    height = max(1, BLOCK_CELLS // words)
    for start in range(0, words, height):
        ids = order[start : start + height]
        joint = mechanism.laws(ids)
        stays[ids] = joint[np.arange(len(ids)), ids]
        joint *= prior[ids, None]
        total += joint.sum(axis=0)
        row = joint.argmax(axis=0)
        likelihood = joint[row, np.arange(words)]
        wins = likelihood > best
        best[wins], owner[wins] = likelihood[wins], ids[row[wins]]
        if progress is not None:
            progress(min(start + height, words), words)
    return Posterior(owner, _quotient(best, total), stays, float(best.sum()), True)


@dataclass(frozen=True)
class GuessingRates:
    """How often one of some frequent words is guessed: `blind` without the release, `seeing` with it."""

    blind: float
    seeing: float


def guessing(mechanism: WordMechanism, prior: Floats, words: int, height: int = 32) -> GuessingRates:
    """Expected success of the Bayes guess when the original is one of the likeliest `words`, from the exact law: the
    vulnerability of `posterior`, at a cost that a page can wait for. Raises NoGuaranteeError without a closed form."""
    likely = np.argsort(-prior, kind="stable")[:words]
    best = np.zeros(len(prior))
    for start in range(0, len(likely), height):
        ids = likely[start : start + height]
        np.maximum(best, (mechanism.laws(ids) * prior[ids, None]).max(axis=0), out=best)
    among = float(prior[likely].sum())
    return GuessingRates(float(prior[likely[0]]) / among, float(best.sum()) / among)


def _sampled_posterior(mechanism: WordMechanism, prior: Floats, seed: int, progress: StepProgress | None) -> Posterior:
    """P(y|x) counted in draws of the likeliest words; an output that was never drawn is guessed to be itself."""
    words = len(prior)
    likely = np.argsort(-prior, kind="stable")[:SAMPLED_WORDS]
    source = Source.from_test_seed(seed)  # a simulation of the public mechanism: nothing of this is released
    best, owner, total = np.zeros(words), np.arange(words, dtype=np.int64), np.zeros(words)
    stays = np.full(words, np.nan)
    step = 250
    for start in range(0, len(likely), step):
        ids = likely[start : start + step]
        drawn = mechanism.released_ids(np.repeat(ids, SAMPLED_DRAWS), source)
        inputs = np.repeat(np.arange(len(ids)), SAMPLED_DRAWS)
        pairs, counts = np.unique(inputs * words + drawn, return_counts=True)
        x, y = np.divmod(pairs, words)
        joint = prior[ids[x]] * counts / SAMPLED_DRAWS
        np.add.at(total, y, joint)
        stays[ids] = 0.0
        same = ids[x] == y
        stays[y[same]] = counts[same] / SAMPLED_DRAWS
        for i in np.argsort(joint, kind="stable"):  # the last assignment to an output is its largest
            if joint[i] > best[y[i]]:
                best[y[i]], owner[y[i]] = joint[i], ids[x[i]]
        if progress is not None:
            progress(start + len(ids), len(likely))
    return Posterior(owner, _quotient(best, total), stays, float(best.sum()), False)


def _quotient(above: Floats, below: Floats) -> Floats:
    result = np.zeros(len(above))
    np.divide(above, below, out=result, where=below > 0)
    return result


# Alignment ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Aligned:
    """Tokens of both texts, position by position.

    original released   vocabulary ids
    rows positions      where each pair stands: index of the row, index of the token in the row
    copied              positions whose token is copied by a stated rule (punctuation kept as it is)
    left_out            rows whose released text has another number of tokens
    outside             original tokens outside the vocabulary, treated as one of its words
    """

    original: Ids
    released: Ids
    rows: Ids
    positions: Ids
    copied: NDArray[np.bool_]
    left_out: int
    outside: int


def released_tokens(text: str, mechanism: WordMechanism, expected: int) -> list[str]:
    """The words that were drawn, from the text they were joined to.

    `split` is the inverse of `join` for its own tokens, but a vocabulary can hold words that `split` would cut or
    change ("&amp;", "inc."). Such a word stays whole. Where it could as well be two words ("inc" and "."), the number
    of tokens decides, which a word mechanism does not hide.
    """
    if mechanism.joining == "spaces":
        return text.split(" ") if text else []
    tokens = [token for piece in text.split() for token in _piece_tokens(piece, mechanism, whole=False)]
    if len(tokens) != expected:
        tokens = [token for piece in text.split() for token in _piece_tokens(piece, mechanism, whole=True)]
    return tokens


def _piece_tokens(piece: str, mechanism: WordMechanism, *, whole: bool) -> list[str]:
    tokens = split(piece)
    if tokens != [piece] and piece in mechanism.lexicon and (whole or join(tokens) != piece):
        return [piece]
    return tokens


def align(pairs: TextPairs, mechanism: WordMechanism) -> Aligned:
    """Vocabulary ids of both texts where they have the same number of tokens."""
    mechanism.prepare()
    lexicon = mechanism.lexicon
    before: list[int] = []
    after: list[int] = []
    rows: list[int] = []
    positions: list[int] = []
    copied: list[bool] = []
    left_out = outside = unknown = seen = 0
    keeps = mechanism.punctuation == "keep"
    for row, (original, released) in enumerate(zip(pairs.originals, pairs.released, strict=True)):
        old = split(original)
        if mechanism.punctuation == "drop":
            old = [token for token in old if not is_punctuation(token)]
        new = released_tokens(released, mechanism, len(old))
        seen += len(new)
        strange = sum(token not in lexicon and not (keeps and token in KEPT_PUNCTUATION) for token in new)
        unknown += strange
        if len(old) != len(new) or strange:
            left_out += 1
            continue
        before += lexicon.ids(old)
        after += lexicon.ids(new)
        rows += [row] * len(old)
        positions += range(len(old))
        copied += [keeps and a == b and a in KEPT_PUNCTUATION for a, b in zip(old, new, strict=True)]
        outside += sum(token not in lexicon for token in old)
    if unknown > MOST_UNKNOWN * max(1, seen):
        raise BadInputError(
            "words-of-another-mechanism",
            "{unknown:.0%} of the released words are not in the vocabulary of {mechanism} with these vectors, so it "
            "did not make this file: give the mechanism and the vectors that did, or leave the attack 'inversion' "
            "out with {option.attacks}",
            unknown=unknown / seen,
            mechanism=mechanism.name,
        )
    if not before:
        raise BadInputError(
            "no-row-aligns",
            "no released row has as many words as its original, so words cannot be attacked one by one: check that "
            "the files belong together, or leave the attack 'inversion' out with {option.attacks}",
        )
    return Aligned(
        np.array(before, dtype=np.int64),
        np.array(after, dtype=np.int64),
        np.array(rows, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(copied, dtype=bool),
        left_out,
        outside,
    )


# The attack ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inversion:
    """Success of both attackers on the tokens of a release, for all words and for the sensitive ones.

    expected_unchanged   mean chance of the claimed law to leave a word as it is (NaN where it was sampled)
    unchanged            share of words that are the same in both texts
    chance_of_unchanged  bound on the chance of so many unchanged words under the claimed law
    leakage              vulnerability / largest prior: how many times likelier a right guess became under the prior
    worst                words that were guessed right with the greatest certainty: row, original, released, certainty
    """

    mechanism: str
    exact: bool
    tokens: int
    left_out: int
    outside: int
    bayes: Success
    nearest: Success
    bayes_by_class: dict[str, Success]
    nearest_by_class: dict[str, Success]
    leakage: float
    vulnerability: float
    unchanged: float
    expected_unchanged: float
    chance_of_unchanged: float
    worst: list[tuple[int, str, str, float]]


def invert(
    pairs: TextPairs,
    mechanism: WordMechanism,
    prior: Floats,
    *,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Inversion:
    """Attack every aligned token of a release."""
    aligned = align(pairs, mechanism)
    known = posterior(mechanism, prior, seed=seed, progress=progress)
    guess = np.where(aligned.copied, aligned.released, known.guess[aligned.released])
    bayes = guess == aligned.original
    nearest = aligned.released == aligned.original
    blind = aligned.original == int(prior.argmax())
    sensitive = sensitive_words(mechanism)[aligned.original]
    classes = {"sensitive words": sensitive, "common words": ~sensitive}
    drawn = ~aligned.copied
    chances = known.stays[aligned.original[drawn]]
    expected = float(chances.mean()) if known.exact and len(chances) else math.nan
    unchanged = float(nearest[drawn].mean()) if drawn.any() else math.nan
    return Inversion(
        mechanism=mechanism.name,
        exact=known.exact,
        tokens=len(bayes),
        left_out=aligned.left_out,
        outside=aligned.outside,
        bayes=scale.of_trials(bayes, floor=float(blind.mean()), ceiling=1.0, looks=2),
        nearest=scale.of_trials(nearest, floor=float(blind.mean()), ceiling=1.0, looks=2),
        bayes_by_class={name: _within(bayes, blind, mask) for name, mask in classes.items()},
        nearest_by_class={name: _within(nearest, blind, mask) for name, mask in classes.items()},
        leakage=known.vulnerability / float(prior.max()),
        vulnerability=known.vulnerability,
        unchanged=unchanged,
        expected_unchanged=expected,
        chance_of_unchanged=chance_of_at_least(unchanged, expected, int(drawn.sum())),
        worst=_worst(pairs, aligned, mechanism, bayes & sensitive, known.certainty),
    )


def _within(right: NDArray[np.bool_], blind: NDArray[np.bool_], mask: NDArray[np.bool_]) -> Success:
    floor = float(blind[mask].mean()) if mask.any() else 0.0
    return scale.of_trials(right[mask], floor=floor, ceiling=1.0, looks=4)


def sensitive_words(mechanism: WordMechanism) -> NDArray[np.bool_]:
    """The mechanism's own sensitive words, or the rarest 90 % of its vocabulary (as in the SanText+ paper)."""
    if isinstance(mechanism, TwoClassWords):
        return mechanism.sensitive
    return rarest_words(mechanism.vocabulary, SENSITIVE_SHARE)


def chance_of_at_least(share: float, mean: float, count: int) -> float:
    """Hoeffding's bound on the chance that independent events with this mean chance happen in this share or more."""
    if not (math.isfinite(share) and math.isfinite(mean)) or share <= mean or count == 0:
        return 1.0
    if mean <= 0.0:
        return 0.0
    part = share * math.log(share / mean)
    rest = 0.0 if share >= 1.0 else (1.0 - share) * math.log((1.0 - share) / (1.0 - mean))
    return math.exp(-count * (part + rest))


def _worst(
    pairs: TextPairs, aligned: Aligned, mechanism: WordMechanism, right: NDArray[np.bool_], certainty: Floats
) -> list[tuple[int, str, str, float]]:
    places = np.flatnonzero(right)
    order = places[np.argsort(-certainty[aligned.released[places]], kind="stable")]
    words, shown, result = mechanism.vocabulary, set(), []
    for i in order.tolist():
        pair = (int(aligned.original[i]), int(aligned.released[i]))
        if pair not in shown:
            shown.add(pair)
            row = pairs.rows[int(aligned.rows[i])]
            result.append((row, words[pair[0]], words[pair[1]], float(certainty[pair[1]])))
        if len(result) == WORST:
            break
    return result


# The report ---------------------------------------------------------------------------------------------------------


def section(inversion: Inversion, *, prior: str = "public word frequencies", detector: str = "none") -> Section:
    how = (
        "from the exact law of the mechanism"
        if inversion.exact
        else f"from {SAMPLED_DRAWS} simulated draws of each of the {SAMPLED_WORDS:,} likeliest words, since the "
        "mechanism has no closed form: a better attacker may exist"
    )
    text = (
        f"Word mechanisms show which output belongs to which position. The Bayes attacker guesses the most probable "
        f"original of each released word, {how}, with {prior} as prior. The nearest attacker guesses the released word "
        f"itself. Blind: always the most frequent word. {inversion.tokens:,} tokens were attacked"
        f"{_rest(inversion)}."
    )
    if detector != "none":
        text += f" The attacker does not use which words the '{detector}' detector marked."
    findings = [_fit(inversion)] if inversion.exact else []
    name, best = stronger(inversion.bayes, inversion.nearest)
    findings.append(
        scale.finding(
            "words recovered", best, f"The stronger of both attackers ({name}) recovers the word",
            without=UNCHANGED, attacker=name, vulnerability=inversion.vulnerability, leakage=inversion.leakage,
            exact=inversion.exact,
        )
    )  # fmt: skip
    name, best = stronger(inversion.bayes_by_class["sensitive words"], inversion.nearest_by_class["sensitive words"])
    if best.cases:
        what = f"The stronger of both attackers ({name}) recovers a sensitive (rare) word"
        findings.append(scale.finding("sensitive words recovered", best, what, without=UNCHANGED, attacker=name))
    rows = []
    for name, bayes, nearest in (
        ("all words", inversion.bayes, inversion.nearest),
        *(
            (name, inversion.bayes_by_class[name], inversion.nearest_by_class[name])
            for name in inversion.bayes_by_class
        ),
    ):
        rows.append([name, bayes.cases, bayes.rate, bayes.low, bayes.high, nearest.rate, bayes.floor])
    tables = [
        Table(
            "Inversion of words",
            ("words", "tokens", "Bayes", "low", "high", "nearest", "blind"),
            rows,
            f"Under the prior itself, a right guess of one word has the chance {inversion.vulnerability:.1%}, "
            f"{inversion.leakage:.3g} times that of a blind guess.",
        )
    ]
    if inversion.worst:
        tables.append(
            Table(
                "Sensitive words that were guessed right with the greatest certainty",
                ("row", "original", "released", "certainty"),
                [list(row) for row in inversion.worst],
                "certainty: the posterior probability of the guess, given the released word and the prior",
                private=True,
            )
        )
    return Section("Inversion: which word stood there?", text, findings, tables)


def stronger(bayes: Success, nearest: Success) -> tuple[str, Success]:
    """The Bayes guess is optimal for texts that follow the prior; for others the plain guess can be better."""
    return ("nearest", nearest) if nearest.rate > bayes.rate else ("Bayes", bayes)


def _rest(inversion: Inversion) -> str:
    parts = []
    if inversion.left_out:
        parts.append(f"{inversion.left_out:,} rows were left out because their numbers of tokens differ")
    if inversion.outside:
        parts.append(
            f"{inversion.outside:,} tokens outside the vocabulary count as recovered when the word they are treated "
            "as is"
        )
    return f"; {'; '.join(parts)}" if parts else ""


def _fit(inversion: Inversion) -> Finding:
    """Whether the release can have come from the claimed law: too many unchanged words refute it."""
    numbers = {
        "unchanged": inversion.unchanged,
        "expected": inversion.expected_unchanged,
        "chance": inversion.chance_of_unchanged,
    }
    why = (
        f"The claim counts as refuted when the claimed law leaves so many words unchanged with a chance below "
        f"{REFUTED_BELOW:g} (Hoeffding's bound). Fewer unchanged words than expected cost utility, not privacy."
    )
    if inversion.chance_of_unchanged < REFUTED_BELOW:
        return Finding(
            "does the release fit the claimed mechanism",
            Light.RED,
            f"No: {inversion.unchanged:.1%} of the words are unchanged, where {inversion.mechanism} as claimed leaves "
            f"{inversion.expected_unchanged:.1%}; the chance of so many is below {REFUTED_BELOW:g}. "
            "It was not made with this mechanism, this epsilon and these vectors.",
            why,
            refuted=True,
            numbers=numbers,
        )
    return Finding(
        "does the release fit the claimed mechanism",
        Light.NONE,
        f"Not refuted: {inversion.unchanged:.1%} of the words are unchanged, where {inversion.mechanism} as claimed "
        f"leaves {inversion.expected_unchanged:.1%} on average.",
        why,
        numbers=numbers,
    )
