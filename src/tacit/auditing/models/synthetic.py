"""Synthetic text beside the private rows it was learned from: copies, near copies, canaries.

An audit, for the eyes of whoever holds the private rows: its result is *not* covered by the guarantee of the synthetic
text. It must not decide which texts are released, one by one: that a text is missing because a private row resembles it
would tell about that row.

What is a copy? Real rows repeat each other too ("play some music"), so copies alone show nothing. The private rows are
cut in two halves at random: how often does a row of one half stand, whole or nearly, in the other half (chance), and
how often does a synthetic text? A model that has learned the language of the rows stays at chance; one that has
memorized rows copies more. The difference of the two shares is tested with Fisher's exact test. Measured on these
texts; that nothing was found does not show that nothing can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import fisher_exact

from tacit.auditing.models.canaries import Canary, Losses, canary_section, exposures
from tacit.auditing.models.overlap import Corpus, TextOverlap
from tacit.errors import BadInputError
from tacit.noise.source import new_source, public_generator
from tacit.progress import StepProgress
from tacit.report import Finding, Light, Report, Section, Table

ENUMERATED = 10_000
"""Candidates of a canary format that are all scored; of more, a sample."""

NEAR = 0.8
SHORTEST = 5
"""Tokens that a text must have to count as a copy: shorter ones coincide by chance."""

COMPARED = 1_000


@dataclass(frozen=True)
class Copies:
    """Counts among the compared texts of at least `SHORTEST` tokens.

    compared, exact, near    synthetic texts; those that stand whole in half of the private rows; those within 20 %
                             token edits of one (exact ones included)
    chance_*                 the same for real rows of the other half
    everywhere               synthetic texts that stand whole or nearly in any private row
    p_value                  of Fisher's exact test: do synthetic texts copy more often than real rows do?
    worst                    synthetic text, longest run, edits, nearest private row: private
    """

    compared: int
    exact: int
    near: int
    chance_compared: int
    chance_exact: int
    chance_near: int
    everywhere: int
    p_value: float
    worst: tuple[tuple[str, int, int, str], ...]

    @property
    def share(self) -> float:
        return self.near / self.compared if self.compared else 0.0

    @property
    def chance_share(self) -> float:
        return self.chance_near / self.chance_compared if self.chance_compared else 0.0


def compare_with_private(
    texts: Sequence[str],
    private: Sequence[str],
    *,
    seed: int = 0,
    compared: int = COMPARED,
    progress: StepProgress | None = None,
) -> Copies:
    """Up to `compared` synthetic texts, and as many private rows, beside private rows."""
    if len(private) < 4 or not texts:
        raise BadInputError("too-few-rows", "a comparison needs at least 4 private rows and 1 synthetic text")
    generator = public_generator(seed)
    order = generator.permutation(len(private))
    half = len(private) // 2
    reference = Corpus([private[i] for i in order[:half]])
    others = [private[i] for i in order[half:]][:compared]
    chosen = [texts[i] for i in generator.permutation(len(texts))[:compared]]
    total, done = 2 * len(chosen) + len(others), 0

    def overlaps(corpus: Corpus, wanted: Sequence[str]) -> list[TextOverlap]:
        nonlocal done
        overlapping: list[TextOverlap] = []
        for start in range(0, len(wanted), 50):
            overlapping += corpus.overlaps(wanted[start : start + 50])
            done += len(wanted[start : start + 50])
            if progress is not None:
                progress(done, total)
        return overlapping

    ours, chance = overlaps(reference, chosen), overlaps(reference, others)
    whole = Corpus(private)
    everywhere = overlaps(whole, chosen)
    size, exact, near = _counted(ours)
    chance_size, chance_exact, chance_near = _counted(chance)
    table = [[near, size - near], [chance_near, chance_size - chance_near]]
    p_value = float(fisher_exact(table, alternative="greater").pvalue) if size and chance_size else 1.0
    ranked = sorted(zip(chosen, everywhere, strict=True), key=lambda pair: (-pair[1].similarity, -pair[1].run))
    worst = tuple(
        (text, overlap.run, overlap.distance, whole.texts[overlap.nearest] if overlap.nearest >= 0 else "")
        for text, overlap in ranked[:10]
    )
    return Copies(
        size, exact, near, chance_size, chance_exact, chance_near, _counted(everywhere)[2], p_value, worst
    )  # fmt: skip


def _counted(overlaps: Sequence[TextOverlap]) -> tuple[int, int, int]:
    long_enough = [overlap for overlap in overlaps if overlap.tokens >= SHORTEST]
    exact = sum(overlap.verbatim for overlap in long_enough)
    near = sum(overlap.similarity >= NEAR for overlap in long_enough)
    return len(long_enough), exact, near


@dataclass(frozen=True)
class WrittenCanaries:
    """The numbers of canaries in the synthetic texts: inserted ones, and left-out ones for comparison."""

    inserted: int
    inserted_found: int
    left_out: int
    left_out_found: int


def canaries_in(texts: Sequence[str], canaries: Sequence[Canary]) -> WrittenCanaries:
    """The canaries that the model wrote down word for word."""
    corpus = Corpus(texts)
    verbatim = [overlap.verbatim for overlap in corpus.overlaps([canary.text for canary in canaries])]
    pairs = list(zip(canaries, verbatim, strict=True))
    return WrittenCanaries(
        sum(canary.included for canary in canaries),
        sum(hit for canary, hit in pairs if canary.included),
        sum(not canary.included for canary in canaries),
        sum(hit for canary, hit in pairs if not canary.included),
    )


# For a report -----------------------------------------------------------------------------------------------------


def copies_section(copies: Copies, *, false_alarm: float = 0.01) -> Section:
    """Copies of private rows, beside what chance gives."""
    more = copies.p_value < false_alarm
    light = Light.NONE if not copies.compared else Light.RED if more else Light.GREEN
    sentence = (
        f"{copies.near:,} of {copies.compared:,} synthetic texts of {SHORTEST} tokens or more ({copies.share:.1%}) "
        f"stand whole or nearly in half of the private rows, {copies.exact:,} of them word for word; of "
        f"{copies.chance_compared:,} real rows of the other half {copies.chance_near:,} do "
        f"({copies.chance_share:.1%}). "
        + ("Synthetic texts copy more than real rows repeat each other" if more else "That is not more than by chance")
        + f" (Fisher's exact test, p = {copies.p_value:.2g})."
    )
    why = (
        f"Red: copies (at most {1 - NEAR:.0%} of the tokens edited) are more frequent among synthetic texts than among "
        f"real rows, with a false-alarm rate of {false_alarm:g}. Green: not shown, for these texts."
    )
    numbers = {
        "compared": copies.compared, "exact": copies.exact, "near": copies.near, "share": copies.share,
        "chance_compared": copies.chance_compared, "chance_exact": copies.chance_exact,
        "chance_near": copies.chance_near, "chance_share": copies.chance_share, "everywhere": copies.everywhere,
        "p_value": copies.p_value,
    }  # fmt: skip
    table = Table(
        "Synthetic texts closest to private rows",
        ("synthetic text", "longest run", "edits", "nearest private row"),
        copies.worst,
        private=True,
    )
    return Section(
        "Copies of private rows",
        "An audit after the fact, and private itself: taking texts out because of it would break the guarantee.",
        (Finding("Copies", light, sentence, why, numbers=numbers),),
        (table,) if copies.worst else (),
    )


def written_canaries_section(canaries: WrittenCanaries) -> Section:
    """Canaries that came out word for word."""
    light = Light.RED if canaries.inserted_found > canaries.left_out_found else Light.GREEN
    sentence = (
        f"{canaries.inserted_found:,} of {canaries.inserted:,} inserted canaries stand word for word in the "
        f"synthetic texts; of {canaries.left_out:,} that were left out, {canaries.left_out_found:,}."
    )
    numbers = {
        "inserted": canaries.inserted, "inserted_found": canaries.inserted_found, "left_out": canaries.left_out,
        "left_out_found": canaries.left_out_found,
    }  # fmt: skip
    why = "Red: more inserted canaries came out than left-out ones. Green: not shown, for these texts."
    return Section("Canaries that were written", findings=(Finding("Canaries written", light, sentence, why,
                                                                   numbers=numbers),))  # fmt: skip


def release_report(
    texts: Sequence[str],
    private: Sequence[str],
    *,
    canaries: Sequence[Canary] | None = None,
    losses: Losses | None = None,
    progress: StepProgress | None = None,
) -> Report:
    """Synthetic texts beside the private rows that their model learned from; with canaries among those rows, also how
    well the model knows them, by its `losses`, and which of them were written. The report is private."""
    sections = [copies_section(compare_with_private(texts, private, progress=progress))]
    if canaries is not None:
        if losses is not None:
            sections.append(canary_section(exposures(losses, canaries, source=new_source(0), enumerated=ENUMERATED)))
        sections.append(written_canaries_section(canaries_in(texts, canaries)))
    facts: dict[str, object] = {"rows": len(private), "texts": len(texts)}
    return Report("Synthetic text beside its private rows", sections, facts)
