"""The report of an audit of a synthetic corpus."""

from __future__ import annotations

from tacit.auditing.synthetic.artifact import SketchNoise
from tacit.auditing.synthetic.membership import ShadowAttack
from tacit.report import AtLeast, AtMost, Finding, Light, Section, Table
from tacit.rounding import rounded_down, rounded_up

NO_PROOF = "Green: not shown, which does not prove the promise."


def attack_section(attack: ShadowAttack, title: str, text: str) -> Section:
    """Attacks on all targets beside what the card allows."""
    best = attack.best.separation
    guessed = (
        f"The best guess whether a target was in is right in {best.accuracy:.1%} of {2 * best.releases:,} releases "
        f"(+- {attack.accuracy_margin:.1%}; '{attack.best.target}', by {best.score}); guessing is right in 50 %, and "
        f"the card allows {attack.allowed_accuracy:.1%}."
    )
    bound = f"Epsilon is at least {rounded_down(attack.epsilon, 3)}"
    if attack.claimed_shift is not None:
        bound += f", and {rounded_down(attack.epsilon_if_normal, 3)} for normal noise"
    claimed = rounded_up(attack.claimed_epsilon)
    verdict = f"The claimed {claimed} is refuted." if attack.refuted else f"The claimed {claimed} is not refuted."
    finding = Finding(
        title,
        Light.RED if attack.refuted else Light.GREEN,
        f"{guessed} {bound}. {verdict}",
        "Red: a lower bound (Clopper & Pearson, on releases that did not choose score and threshold) is above the "
        "claim, or two releases are farther apart than normal noise of the card's scale allows. A right release is "
        f"called refuted with probability {1 - attack.confidence:.2g} at most. {NO_PROOF}",
        refuted=attack.refuted,
        numbers={
            "accuracy": attack.accuracy, "accuracy_margin": attack.accuracy_margin,
            "allowed_accuracy": attack.allowed_accuracy, "epsilon_at_least": attack.epsilon,
            "epsilon_at_least_if_normal": attack.epsilon_if_normal, "claimed_epsilon": attack.claimed_epsilon,
            "claimed_delta": attack.claimed_delta, "false_alarm": 1 - attack.confidence,
        },
    )  # fmt: skip
    rows = [
        (
            each.target, each.separation.score, each.separation.accuracy, each.separation.area,
            AtLeast(each.separation.epsilon), AtLeast(each.separation.shift),
            None if attack.claimed_shift is None else AtMost(attack.claimed_shift),
        )
        for each in attack.attacks
    ]  # fmt: skip
    table = Table(
        "Targets",
        ("target", "best score", "right guesses", "area", "epsilon at least", "deviations at least", "allowed"),
        rows,
        "Deviations: by how many standard deviations of the noise a target moves the release.",
    )
    return Section(title, text, findings=(finding,), tables=(table,))


def noise_section(noise: SketchNoise, title: str = "Noise in the sketch") -> Section:
    """The noise of the released sketch beside what its card says."""
    shown = "; ".join(f"{group.name}: {group.ratio:.1%} of it" for group in noise.groups)
    claimed = rounded_up(noise.claimed_epsilon)
    if noise.foreign:
        light = Light.AMBER
        sentence = (
            "The sketch is far from the sums of these rows: it was made of other rows, or with other columns. Nothing "
            "follows about its noise."
        )
    else:
        light = Light.RED if noise.refuted else Light.GREEN
        sentence = f"The size of the noise beside that of the card: {shown}. " + (
            f"Epsilon is at least {rounded_down(noise.epsilon, 3)}: the claimed {claimed} is refuted."
            if noise.refuted
            else f"The claimed epsilon {claimed} is not refuted."
        )
    finding = Finding(
        title,
        light,
        sentence,
        f"Red: the noise is too small for the claim, wrong with probability {noise.doubt:.2g} at most, given that it "
        f"is independent noise of the kind that the card names. {NO_PROOF}",
        refuted=noise.refuted,
        numbers={
            "claimed_epsilon": noise.claimed_epsilon, "epsilon_at_least": noise.epsilon, "foreign": noise.foreign,
            "ratios": {group.name: group.ratio for group in noise.groups},
        },
    )  # fmt: skip
    table = Table(
        "Noise",
        ("numbers of", "how many", "noise beside the card", "scale at most", "epsilon at least"),
        [
            (group.name, group.numbers, group.ratio, AtMost(group.scale), AtLeast(group.epsilon))
            for group in noise.groups
        ],
    )
    return Section(title, findings=(finding,), tables=(table,))
