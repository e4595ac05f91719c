"""The report on a synthetic corpus. It is computed from private rows, so it is private itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.evaluation.corpus.clouds import CloudDistances
from tacit.evaluation.corpus.facts import FALSE_ALARM, Facts
from tacit.evaluation.corpus.fluency import POOL_TRIPLES, Fluency
from tacit.evaluation.corpus.learning import CorpusScores
from tacit.evaluation.corpus.wording import LabelShares, Wording
from tacit.report import Figure, Finding, Light, Report, Section, Table

TITLE = "How good a synthetic corpus is"
GOOD, FAIR = 0.8, 0.4
"""Shares kept from which on a release is good, or worth a look; those of all evaluations."""
NEAR, FAR = 0.25, 0.6
"""Ways from the originals' own halves (0) to random public text (1)."""
SHIFTED, MOVED = 0.05, 0.15
"""Shares of rows with another label than in the originals."""
REPEATED = 0.5
PRIVATE_TITLE = "This report is private"
PRIVATE_TEXT = (
    "It was computed from the private rows, without any noise: no card and no epsilon covers it. It is for the holder "
    "of the rows, who decides with it whether a release is good enough. Do not publish it with the corpus. Deciding "
    "by it among several releases makes the choice depend on the private rows, too."
)


@dataclass(frozen=True)
class CorpusMeasures:
    """All that was measured of a corpus; what could not be measured is None."""

    labels: LabelShares
    wording: tuple[Wording, Wording]
    clouds: CloudDistances
    scores: CorpusScores | None = None
    fluency: Fluency | None = None
    facts: Facts | None = None
    remarks: Sequence[Finding] = ()


def corpus_report(measured: CorpusMeasures, facts: dict[str, object], *, figures: bool = False) -> Report:
    """The report with lights; `figures` adds drawings."""
    sections = [private_section(measured.remarks)]
    if measured.scores is not None:
        sections.append(learners_section(measured.scores, figures=figures))
    sections += [labels_section(measured.labels, figures=figures), clouds_section(measured.clouds)]
    sections.append(wording_section(*measured.wording))
    if measured.fluency is not None:
        sections.append(fluency_section(measured.fluency))
    if measured.facts is not None:
        sections.append(facts_section(measured.facts))
    return Report(TITLE, sections, facts)


def private_section(remarks: Sequence[Finding] = ()) -> Section:
    """The warning that stands first."""
    finding = Finding(PRIVATE_TITLE, Light.AMBER, PRIVATE_TEXT)
    # The table marks files of this report as private even where no text is quoted.
    marker = Table("Who may read this", ("reader",), [("the holder of the private rows",)], private=True)
    return Section(PRIVATE_TITLE, findings=(finding, *remarks), tables=(marker,))


def learners_section(scores: CorpusScores, *, figures: bool = False) -> Section:
    """Scores of all learners, and a light for the worst."""
    worst, floor = scores.worst, scores.floor.value
    kept = worst.share_kept(floor)
    value = worst.released.macro_f1
    if math.isnan(kept):
        light = Light.NONE
    elif value.low <= floor:
        light = Light.RED
    else:
        light = Light.GREEN if kept >= GOOD else Light.AMBER if kept >= FAIR else Light.RED
    findings = [
        Finding(
            f"The worst of {len(scores.learners)} learners",
            light,
            f"'{worst.learner}' reaches a macro-F1 of {value} trained on the release, {worst.original.macro_f1} "
            f"trained on the originals; {floor:.3f} needs no text. It keeps {kept:.0%} of the way.",
            f"Good from {GOOD:.0%} of the way between the score without text and that of the originals, look from "
            f"{FAIR:.0%}, bad below or where the interval reaches the score without text. Interval over test rows.",
            numbers={
                "learner": worst.learner, "macro_f1": value.value, "low": value.low, "high": value.high,
                "original_macro_f1": worst.original.macro_f1.value, "floor": floor, "share_kept": kept,
            },
        )
    ]  # fmt: skip
    if all(each.public is not None for each in scores.learners):
        findings.append(_against_public(scores))
    never = sorted({label for each in scores.learners for label in each.released.never})
    if never:
        findings.append(
            Finding(
                "Labels that a learner never predicts",
                Light.AMBER,
                f"{len(never):,} of the labels are never predicted by at least one learner that was trained on the "
                "release.",
                numbers={"labels": len(never)},
            )
        )
    rows = [
        (
            each.learner, each.original.macro_f1.value, each.released.macro_f1.value,
            None if each.public is None else each.public.macro_f1.value, each.original.accuracy, each.released.accuracy,
            None if each.public is None else each.public.accuracy, each.share_kept(floor),
        )
        for each in scores.learners
    ]  # fmt: skip
    table = Table(
        "Learners, tested on originals",
        ("learner", "originals", "release", "names only", "originals", "release", "names only", "share kept"),
        rows,
        f"Trained on {scores.trained_rows:,} originals or {scores.released_rows:,} released rows, tested on "
        f"{scores.test_rows:,} others. 'Names only': public sentences under the label whose name they resemble most.",
        groups=(("", 1), ("macro-F1", 3), ("accuracy", 3), ("", 1)),
    )
    drawings = (_learner_figure(scores),) if figures else ()
    return Section("What learners make of it", findings=findings, tables=(table,), figures=drawings)


def _against_public(scores: CorpusScores) -> Finding:
    """Whether the release is worth more than what needs no private row."""
    margins = [
        each.released.macro_f1.value - each.public.macro_f1.value for each in scores.learners if each.public is not None
    ]
    least = min(margins)
    light = Light.GREEN if least > 0.02 else Light.AMBER if least > -0.02 else Light.RED
    return Finding(
        "Worth its budget",
        light,
        f"Trained on the release, learners score {least:+.3f} or more beside public sentences that know only the names "
        "of the labels.",
        "Bad: for some learner the release is worse than rows that anybody could have made without the private file.",
        numbers={"smallest_margin": least},
    )


def labels_section(shares: LabelShares, *, figures: bool = False) -> Section:
    """Proportions of the labels."""
    moved = shares.distance
    light = Light.RED if shares.missing or moved > MOVED else Light.AMBER if moved > SHIFTED else Light.GREEN
    missing = f" {len(shares.missing):,} labels of the originals are missing." if shares.missing else ""
    finding = Finding(
        "Proportions of labels",
        light,
        f"{moved:.1%} of the rows would have to change their label for the proportions of the originals.{missing}",
        f"Good up to {SHIFTED:.0%}, bad beyond {MOVED:.0%} or with a label missing.",
        numbers={"total_variation": moved, "missing": len(shares.missing)},
    )
    rows = sorted(zip(shares.labels, shares.original, shares.released, strict=True), key=lambda row: -row[1])
    table = Table("Labels", ("label", "share of originals", "share of release"), rows, private=True)
    drawings = (_label_figure(rows),) if figures and len(rows) <= 40 else ()
    return Section("Labels", findings=(finding,), tables=(table,), figures=drawings)


def clouds_section(clouds: CloudDistances) -> Section:
    """Distances of the clouds of vectors."""
    whole = clouds.together
    way = whole.way
    light = Light.NONE if way is None else Light.GREEN if way <= NEAR else Light.AMBER if way <= FAR else Light.RED
    placed = "" if way is None else f", {way:.0%} of the way to public sentences at random ({whole.public:.4f})"
    finding = Finding(
        "Distance of the clouds",
        light,
        f"The vectors of the release are {whole.distance:.4f} from those of the originals (energy distance); two "
        f"halves of the originals are at most {whole.floor:.4f} apart{placed}.",
        f"Good up to {NEAR:.0%} of the way, bad beyond {FAR:.0%}. Encoder {clouds.encoder}, samples of "
        f"{clouds.rows:,} rows.",
        numbers={"distance": whole.distance, "floor": whole.floor, "public": whole.public, "way": way},
    )
    rows = [(label, each.distance, each.floor) for label, each in clouds.labels.items()]
    table = Table("Distance by label", ("label", "release", "halves of the originals"), rows)
    return Section("Clouds of vectors", findings=(finding,), tables=(table,) if rows else ())


def wording_section(original: Wording, released: Wording) -> Section:
    """Repeated rows and distinct words."""
    repeats = Finding(
        "Repeated rows",
        Light.AMBER if released.duplicates > max(REPEATED, 2 * original.duplicates) else Light.GREEN,
        f"{released.duplicates:.1%} of the released rows repeat the words of another one; of the originals "
        f"{original.duplicates:.1%} do.",
        f"Look: more than half of the rows, and more than twice as many as in the originals ({REPEATED:.0%}).",
        numbers={"released": released.duplicates, "original": original.duplicates},
    )
    ratio = released.distinct_words / original.distinct_words if original.distinct_words else math.nan
    variety = Finding(
        "Distinct words",
        Light.AMBER if ratio < 0.5 else Light.GREEN if ratio >= 0.5 else Light.NONE,
        f"{released.distinct_words:.1%} of {released.words:,} released words are different ones, and "
        f"{original.distinct_words:.1%} of as many words of the originals.",
        "Look: less than half as many as in the originals.",
        numbers={"released": released.distinct_words, "original": original.distinct_words, "words": released.words},
    )
    table = Table(
        "Wording",
        ("", "rows", "repeated rows", "distinct words", "words of a row"),
        [
            (name, side.rows, side.duplicates, side.distinct_words, side.length)
            for name, side in (("originals", original), ("release", released))
        ],
    )
    return Section("Wording", findings=(repeats, variety), tables=(table,))


def fluency_section(fluency: Fluency) -> Section:
    """Perplexities."""
    fluent = fluency.released <= max(fluency.original, fluency.salad / 2)
    why = "Good: no worse than the originals, or at most half of the perplexity of its own words in random order."
    if fluency.model == POOL_TRIPLES:
        why += (
            " No language model is installed, so the model is one of word triples, counted on sentences of the public "
            "pool that are not in the release: it finds text like the pool fluent, and says little about the originals."
        )
    finding = Finding(
        "Fluency",
        Light.GREEN if fluent else Light.AMBER,
        f"Perplexity {fluency.released:,.0f} under {fluency.model}; the originals have {fluency.original:,.0f}, the "
        f"released words in random order {fluency.salad:,.0f}.",
        why,
        numbers={
            "model": fluency.model, "released": fluency.released, "original": fluency.original, "salad": fluency.salad,
        },
    )  # fmt: skip
    return Section("Fluency", f"On {fluency.texts:,} texts of each side.", findings=(finding,))


def facts_section(facts: Facts) -> Section:
    """Names, numbers and rare words of private rows in the release."""
    beyond = ""
    if facts.beyond_pool is not None:
        beyond = f" Of all {facts.everywhere:,} strings of the private file that stand in the release, "
        beyond += f"{facts.beyond_pool:,} stand in no sentence of the public pool."
    finding = Finding(
        "Facts and names",
        Light.RED if facts.more_than_chance else Light.GREEN,
        f"{facts.private_seen:,} of {facts.private:,} names, numbers and rare words of private rows stand in the "
        f"release; of {facts.held_out:,} from as many rows that it never saw, {facts.held_out_seen:,} do (Fisher's "
        f"exact test, p = {facts.p_value:.2g}).{beyond}",
        f"Bad: more than chance, with a false-alarm rate of {FALSE_ALARM:g} if the two files are a random split of "
        "one. Good: not shown, for strings that patterns can see.",
        numbers={
            "private": facts.private, "private_seen": facts.private_seen, "held_out": facts.held_out,
            "held_out_seen": facts.held_out_seen, "p_value": facts.p_value, "everywhere": facts.everywhere,
            "beyond_pool": facts.beyond_pool,
        },
    )  # fmt: skip
    table = Table("Strings of private rows that stand in the release", ("kind", "string"), facts.examples, private=True)
    return Section("Facts and names", findings=(finding,), tables=(table,) if facts.examples else ())


# Drawings -----------------------------------------------------------------------------------------------------------


def _learner_figure(scores: CorpusScores) -> Figure:
    from tacit.report.plot import axes, figure

    canvas, area = axes(height=0.8 + 0.7 * len(scores.learners))
    arms = [("originals", 0.25), ("release", 0.0), ("names only", -0.25)]
    for name, shift in arms:
        trained = [
            {"originals": each.original, "release": each.released, "names only": each.public}[name]
            for each in scores.learners
        ]
        places = [place for place, score in enumerate(trained) if score is not None]
        if places:
            values = [score.macro_f1.value for score in trained if score is not None]
            area.barh([place + shift for place in places], values, height=0.22, label=name)
    area.axvline(scores.floor.value, color="#444444", linewidth=1, linestyle=":", label="without text")
    area.set_yticks(range(len(scores.learners)), [each.learner for each in scores.learners])
    area.set_xlim(0, 1)
    area.set_xlabel("macro-F1 on originals")
    area.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure(canvas, "Learners", "Macro-F1 of each learner by what it was trained on.")


def _label_figure(rows: Sequence[tuple[str, float, float]]) -> Figure:
    from tacit.report.plot import axes, figure

    canvas, area = axes(height=1.0 + 0.28 * len(rows))
    places = list(range(len(rows)))
    area.barh([place + 0.2 for place in places], [row[1] for row in rows], height=0.36, label="originals")
    area.barh([place - 0.2 for place in places], [row[2] for row in rows], height=0.36, label="release")
    area.set_yticks(places, [row[0] for row in rows])
    area.invert_yaxis()
    area.set_xlabel("share of rows")
    area.legend(frameon=False)
    return figure(canvas, "Labels", "Share of each label in the originals and in the release.")
