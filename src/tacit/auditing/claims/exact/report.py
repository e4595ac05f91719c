"""The result of an exact check as a section of a report."""

from __future__ import annotations

from tacit.auditing.claims.exact.result import ClaimVerdict, ExactResult
from tacit.report import AtMost, Finding, Light, Section, Table
from tacit.rounding import rounded_down, rounded_up


def exact_section(result: ExactResult, *, title: str = "Exact check") -> Section:
    """The result for people: one finding, and the worst pairs."""
    claim, w = result.claim, result.worst
    numbers: dict[str, object] = {
        "verdict": result.verdict.value,
        "pairs": result.pairs,
        "excess": result.excess,
        "excess_at_most": result.excess_at_most,
        "tightest_epsilon": result.tightest,
        "tightest_epsilon_at_most": result.tightest_at_most,
        "claimed_epsilon": claim.epsilon,
        "claimed_delta": claim.delta,
        "worst": {"left": w.left, "right": w.right, "output": w.output, "loss": w.loss, "bound": w.bound},
    }
    if result.steepest is not None:
        numbers |= {"tightest_metric": result.steepest, "tightest_metric_at_most": result.steepest_at_most}
    if w.delta is not None:
        numbers["smallest_delta"] = w.delta
    verdict = result.verdict
    light = {ClaimVerdict.REFUTED: Light.RED, ClaimVerdict.HOLDS: Light.GREEN, ClaimVerdict.OPEN: Light.AMBER}[verdict]
    finding = Finding(
        "Claim against the exact law",
        light,
        _sentence(result),
        f"An excess above {result.tolerance:g} refutes; below it, the claim is true for {result.scope}, and nothing is "
        "said about others.",
        refuted=verdict is ClaimVerdict.REFUTED,
        numbers=numbers,
    )
    rows = [("largest excess over the claim", result.excess, w), ("largest loss", result.tightest, result.largest)]
    if result.shared_output is not None:
        rows.append(("unprotected output of two inputs", result.shared_output.loss, result.shared_output))
    table = Table(
        "Worst cases",
        ["what", "value", "input x", "input x'", "output", "loss", "allowed", "distance"],
        [
            [what, AtMost(value), v.left, v.right, v.output, AtMost(v.loss), AtMost(v.bound), v.distance]
            for what, value, v in rows
        ],
        note="loss = ln(Pr[output | x] / Pr[output | x'])",
    )
    return Section(title, f"Checked: {result.scope}. Claim: {claim}.", [finding], [table])


def _sentence(result: ExactResult) -> str:
    w, claim = result.worst, result.claim
    if result.shared_output is not None:
        s = result.shared_output
        return f"Refuted: the unprotected output '{s.output}' comes from two inputs, '{s.left}' and '{s.right}'."
    if result.verdict is ClaimVerdict.REFUTED and w.delta is not None:
        return (
            f"Refuted: between '{w.left}' and '{w.right}' the smallest delta at the claimed epsilon is "
            f"{rounded_down(w.delta, 4)}, "
            f"and {rounded_up(claim.delta)} is claimed."
        )
    if result.verdict is ClaimVerdict.REFUTED:
        shown = rounded_down(w.loss)
        return (
            f"Refuted: the output '{w.output}' tells '{w.left}' from '{w.right}' with a loss that is {shown}, and "
            f"{rounded_up(w.bound)} is allowed."
        )
    if result.verdict is ClaimVerdict.OPEN:
        return (
            f"Open: no pair was found that breaks the claim, but for some the proven bound on the loss exceeds what is "
            f"allowed by up to {rounded_up(result.excess_at_most, 3)}."
        )
    parts = [f"The claim holds for {result.scope}. The tightest epsilon"]
    if claim.delta:
        parts[0] += f" at delta {rounded_up(claim.delta)}"
    parts[0] += f" is {_between(result.tightest, result.tightest_at_most)}"
    if result.steepest is not None and result.steepest_at_most is not None:
        parts.append(
            f"per unit of distance it is {_between(result.steepest, result.steepest_at_most)} of the claimed "
            f"{rounded_up(claim.epsilon)}"
        )
    return "; ".join(parts) + "."


def _between(low: float, high: float) -> str:
    """A value that lies between the two: one number, rounded up, where they hardly differ."""
    if high - low <= 1e-6 * max(1.0, abs(low)):
        return rounded_up(high)
    return f"between {rounded_down(low)} and {rounded_up(high)}"
