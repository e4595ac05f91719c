"""The attack as a section of a report."""

from __future__ import annotations

from tacit.auditing.text import scale
from tacit.auditing.text.inversion.attack import Inversion
from tacit.auditing.text.inversion.bayes import SAMPLED_DRAWS, SAMPLED_WORDS
from tacit.auditing.text.scale import Success
from tacit.report import Finding, Light, Section, Table

REFUTED_BELOW = 1e-9
UNCHANGED = "words that are not rewritten are recovered in"


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
