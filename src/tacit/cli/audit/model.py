"""`tacit audit model`: what a trained model gives away about its training texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.reports import FailOnOption, Update, deliver, progress_bars, step_of
from tacit.errors import BadInputError, BadParameterError, require

if TYPE_CHECKING:
    from tacit.audit.models.scores import Scorer, TextLosses
    from tacit.guarantee import Adjacency
    from tacit.report import Report, Section

CARD = "card.json"
USUAL_DELTA = 1e-5
WORST = 8
REWRITTEN = 300
IMPLAUSIBLE = 1e-6


class Split(StrEnum):
    """How members and non-members were told apart, before training."""

    coins = "coins"
    random = "random"
    unknown = "unknown"


class Neighbors(StrEnum):
    add_remove = "add-remove"
    replace_one = "replace-one"


@dataclass(frozen=True)
class Claim:
    """What is claimed about the model, and where the claim comes from."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    source: str


@dataclass(frozen=True)
class Texts:
    """Texts with their labels, if there are any."""

    texts: list[str]
    labels: list[str] | None


def model(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A saved model, or its name on the model hub.")],
    members: Annotated[str | None, typer.Option(help="Texts the model was trained on.")] = None,
    non_members: Annotated[
        str | None, typer.Option("--non-members", help="Texts of the same kind that it was not trained on.")
    ] = None,
    column: Annotated[str | None, typer.Option("-c", "--column", help="The column of texts, in both files.")] = None,
    label_column: Annotated[
        str | None, typer.Option("--label-column", help="The column of classes, or of target texts.")
    ] = None,
    format: Annotated[str | None, typer.Option(help="Format of both files, if their names do not tell.")] = None,
    split: Annotated[
        Split,
        typer.Option(
            help="How it was decided which texts are members: by a fair coin for each (coins), by a random split of "
            "one pool (random), or in another way. Only the first two let a claim be refuted."
        ),
    ] = Split.unknown,
    reference: Annotated[
        str | None, typer.Option(help="A similar model that saw neither file, to compare losses with.")
    ] = None,
    canaries: Annotated[
        str | None, typer.Option(help="The coins of canaries in its training data, made by 'tacit audit canaries'.")
    ] = None,
    extract: Annotated[int, typer.Option(metavar="N", help="Let the model write N texts, and look them up.")] = 0,
    prompt: Annotated[
        list[str] | None, typer.Option(help="How the written texts begin; may be repeated. By default, with nothing.")
    ] = None,
    claim_epsilon: Annotated[
        float | None, typer.Option("--claim-epsilon", help="The claimed epsilon; by default that of the card.json.")
    ] = None,
    claim_delta: Annotated[float | None, typer.Option("--claim-delta", help="The claimed delta.")] = None,
    claim_neighbors: Annotated[
        Neighbors, typer.Option("--claim-neighbors", help="Neighbors of the claim, if it does not come from a card.")
    ] = Neighbors.add_remove,
    confidence: Annotated[float, typer.Option(help="Confidence of intervals and of each verdict.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the (public) randomness: halves, samples, orders.")] = 0,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json-file", help="Write the JSON object to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing reports.")] = False,
    fail_on: FailOnOption = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar.")] = False,
) -> None:
    """Attack a trained model: membership, canaries, extraction, and a lower bound on epsilon beside the claimed one.

    Works for causal, masked and sequence-to-sequence language models, classifiers, and models of 'tacit pretrain'.
    Exit code 3 means that the claimed epsilon was refuted.

    Example: tacit audit model model/ --members train.csv --non-members held-out.csv --split random --html report.html
    """
    from tacit.audit.models.one_run import check_confidence
    from tacit.report import Report
    from tacit.report.parts import refuse_existing

    check_confidence(confidence)
    for path in (html, json_file):
        if path is not None:
            refuse_existing(path, force=force)
    if html is not None and html.suffix == ".json":
        raise BadParameterError(f"--html writes a page: name it {html.with_suffix('.html').name}, or use --json-file")
    if json_file is not None and json_file.suffix != ".json":
        raise BadParameterError(f"a report for machines ends in .json: name it {json_file.with_suffix('.json').name}")
    if html is not None:
        require("matplotlib", extra="report", purpose="drawing plots")
    _check_options(members, non_members, canaries, extract, prompt)
    claim = _claim(folder, claim_epsilon, claim_delta, claim_neighbors)
    report = Report(f"Audit of the model {Path(folder).name}")
    report.facts = {
        "model": Path(folder).name,
        "reference": None if reference is None else Path(reference).name,
        "confidence": confidence,
        "seed": seed,
        "claimed epsilon": None if claim is None else claim.epsilon,
        "claimed delta": None if claim is None else claim.delta,
        "claim for": None if claim is None else claim.adjacency.value,
        "claim from": None if claim is None else claim.source,
    }
    pair = None
    if members is not None and non_members is not None:
        pair = _both(members, non_members, column, label_column, format, report)
    listed = None
    if canaries is not None:
        from tacit.audit.models.canaries import load_canaries

        listed = load_canaries(canaries)
    scorer, other = _scorers(folder, reference)
    report.facts["kind of model"] = scorer.kind
    if extract and scorer.kind != "causal language model":
        raise BadInputError(
            f"{scorer.name} is a {scorer.kind}, which does not write texts by itself: leave out --extract, or give a "
            "causal language model"
        )
    with progress_bars(shown=not quiet) as told:
        bar = step_of(told)
        if pair is not None:
            report.sections += _membership(
                scorer, other, *pair, split, claim, confidence, seed, report, bar, drawn=html is not None
            )
        if listed is not None:
            report.sections += _canaries(scorer, other, listed, claim, confidence, seed, bar)
        if extract and pair is not None:
            report.sections.append(_extraction(scorer, pair, extract, prompt or [""], seed, bar))
        if pair is not None and scorer.kind == "autoencoder":
            report.sections.append(_memorization(scorer, pair, bar))
    deliver(report, html, json_file, as_json=as_json, force=force, fail_on=fail_on)


# What was asked for -----------------------------------------------------------------------------------------------


def _check_options(
    members: str | None, non_members: str | None, canaries: str | None, extract: int, prompt: list[str] | None
) -> None:
    if (members is None) != (non_members is None):
        missing = "--non-members" if non_members is None else "--members"
        raise BadInputError(
            f"membership is a comparison and needs both sides: give {missing}, a file of texts "
            f"that the model was {'not ' if non_members is None else ''}trained on"
        )
    if members is None and canaries is None:
        raise BadInputError("say what to audit with: --members and --non-members, or --canaries")
    if extract < 0:
        raise BadParameterError(f"--extract takes a number of texts to write, not {extract}")
    if extract and members is None:
        raise BadInputError("--extract looks up what the model writes: give --members and --non-members")
    if prompt and not extract:
        raise BadParameterError("--prompt begins the texts that --extract N lets the model write: give --extract too")


def _claim(folder: str, epsilon: float | None, delta: float | None, neighbors: Neighbors) -> Claim | None:
    """The claim of the options, or of the card beside the model."""
    from tacit.guarantee import Adjacency

    if epsilon is not None:
        if delta is None:
            raise BadParameterError("a claimed epsilon has a delta: give --claim-delta, which is 0 for pure privacy")
        if not (epsilon >= 0 and 0 <= delta < 1):
            raise BadParameterError(f"a claim has epsilon >= 0 and 0 <= delta < 1, not {epsilon:g} and {delta:g}")
        chosen = Adjacency.ADD_REMOVE if neighbors is Neighbors.add_remove else Adjacency.REPLACE_ONE
        return Claim(epsilon, delta, chosen, "the options of this audit")
    if delta is not None:
        raise BadParameterError("--claim-delta belongs to --claim-epsilon: give both, or neither to use the card.json")
    path = Path(folder) / CARD
    if not path.is_file():
        return None
    from tacit.card import Card
    from tacit.guarantee import Notion

    guarantee = Card.from_json(path.read_text(encoding="utf-8")).guarantee
    if guarantee.notion is Notion.NONE:
        return None
    if guarantee.notion not in (Notion.PURE, Notion.APPROXIMATE) or guarantee.adjacency not in (
        Adjacency.ADD_REMOVE,
        Adjacency.REPLACE_ONE,
    ):
        raise BadInputError(
            f"the card of the model promises {guarantee.notion.label} for {guarantee.adjacency.value}, which an attack "
            "on a trained model cannot test: give --claim-epsilon and --claim-delta for its training records"
        )
    return Claim(guarantee.exponent(), guarantee.delta, guarantee.adjacency, f"the {CARD} of the model")


def _both(
    members: str, non_members: str, column: str | None, label: str | None, format: str | None, report: Report
) -> tuple[Texts, Texts]:
    """Both files, without empty texts and without texts that occur more than once in the two together: whether such a
    text was trained on is not one fact. That looks at the pool only, so fair coins stay fair."""
    sides = [_read(path, column, label, format) for path in (members, non_members)]
    times = Counter(text for side in sides for text in side.texts)
    kept = []
    for name, path, side in zip(("members", "non-members"), (members, non_members), sides, strict=True):
        places = [i for i, text in enumerate(side.texts) if text.strip() and times[text] == 1]
        report.facts[name] = f"{len(places):,} of the {len(side.texts):,} texts in {Path(path).name}"
        if not places:
            raise BadInputError(
                f"no text of {Path(path).name} is left: all are empty or occur more than once in the two files, so "
                "nothing tells members from non-members; give files without common texts"
            )
        labels = None if side.labels is None else [side.labels[i] for i in places]
        kept.append(Texts([side.texts[i] for i in places], labels))
    return kept[0], kept[1]


def _read(path: str, column: str | None, label: str | None, format: str | None) -> Texts:
    from tacit.text.files import check_column, choose_columns, format_of, open_table, text_value

    with open_table(path, format_of(path, format)) as table:
        names = list(choose_columns(table.columns, () if column is None else (column,), ()).texts)
        if label is not None:
            check_column(label, table.columns)
            names.append(label)
        table.select(names)
        texts, labels = [], []
        for row, values in table.rows():
            texts.append(text_value(values[0], row, names[0]))
            if label is not None:
                value = values[1]
                labels.append(str(value) if isinstance(value, int) else text_value(value, row, label))
    return Texts(texts, labels if label is not None else None)


def _scorers(folder: str, reference: str | None) -> tuple[Scorer, Scorer | None]:
    from tacit.audit.models.scores import load_scorer

    scorer = load_scorer(folder)
    if reference is None:
        return scorer, None
    other = load_scorer(reference)
    if other.kind != scorer.kind:
        raise BadInputError(
            f"the reference is a {other.kind} and the model a {scorer.kind}: their losses do not compare; give a "
            "reference of the same kind"
        )
    return scorer, other


# The attacks ------------------------------------------------------------------------------------------------------


def _membership(
    scorer: Scorer,
    other: Scorer | None,
    inside: Texts,
    outside: Texts,
    split: Split,
    claim: Claim | None,
    confidence: float,
    seed: int,
    report: Report,
    bar: Callable[[str], Update],
    *,
    drawn: bool,
) -> list[Section]:
    from dataclasses import replace

    from tacit.audit.models import membership
    from tacit.audit.models.one_run import Observations

    sides = []
    for name, side in (("members", inside), ("non-members", outside)):
        own = scorer.losses(side.texts, side.labels, bar(f"scoring {name}"))
        base = None if other is None else other.losses(side.texts, side.labels, bar(f"reference on {name}"))
        places = [i for i in range(len(side.texts)) if own.tokens[i] and (base is None or base.tokens[i])]
        if own.cut:
            report.facts[f"cut {name}"] = f"{own.cut:,} texts are longer than the model reads"
        sides.append(([side.texts[i] for i in places], own.take(places), None if base is None else base.take(places)))
    signals = {
        name: (_signal(name, *sides[0]), _signal(name, *sides[1]))
        for name in ("loss", "zlib", "length", "reference")
        if (name != "reference" or other is not None) and (name in ("loss", "reference") or scorer.kind != "classifier")
    }
    delta = USUAL_DELTA if claim is None else claim.delta
    attacks = [
        membership.attack(name, *pair, delta=delta, confidence=confidence, seed=seed) for name, pair in signals.items()
    ]
    blind = membership.blind(sides[0][0], sides[1][0], confidence=confidence, seed=seed)
    # Chosen before looking: the signal that the literature finds strongest of those at hand.
    chosen = "reference" if other is not None else "loss"
    texts, own, base = sides[0]
    order = sorted(range(len(texts)), key=lambda i: -signals[chosen][0][i])[:WORST]
    worst = [(float(own.mean[i]), None if base is None else float(base.mean[i]), texts[i]) for i in order]
    found = membership.membership_section(attacks, blind, worst)
    if drawn:
        figure = membership.roc_figure([(name, *pair) for name, pair in signals.items()])
        found = replace(found, figures=(figure,))
    observed = Observations(*signals[chosen])
    return [found, *_bound(observed, split, claim, confidence, seed)]


def _signal(name: str, texts: Sequence[str], own: TextLosses, base: TextLosses | None) -> Any:
    from tacit.audit.models import membership

    if name == "reference":
        assert base is not None
        return membership.reference_signal(own, base)
    if name == "loss":
        return membership.loss_signal(own)
    return (membership.zlib_signal if name == "zlib" else membership.length_signal)(own, texts)


def _bound(observed: Any, split: Split, claim: Claim | None, confidence: float, seed: int) -> list[Section]:
    """The lower bound that these members and non-members give, as far as their split is random."""
    from scipy.stats import binomtest

    from tacit.audit.models.one_run import (
        SMALLEST_GUESSES,
        Observations,
        audit_observations,
        changed_records,
        fair_subset,
        one_run_section,
    )
    from tacit.guarantee import Adjacency

    adjacency = Adjacency.ADD_REMOVE if claim is None else claim.adjacency
    by_coins = split is Split.coins and adjacency is Adjacency.ADD_REMOVE
    if split is Split.coins and binomtest(len(observed.included), observed.canaries, 0.5).pvalue < IMPLAUSIBLE:
        raise BadInputError(
            f"{len(observed.included):,} members and {len(observed.excluded):,} non-members cannot come from fair "
            "coins: use --split random for a random split of other sizes"
        )
    if not by_coins:
        into, out = fair_subset(len(observed.included), len(observed.excluded), seed)
        if len(into) < 1 or len(out) < 1 or len(into) + len(out) < SMALLEST_GUESSES:
            return []
        observed = Observations(observed.included[into], observed.excluded[out])
    audit = audit_observations(
        observed,
        delta=USUAL_DELTA if claim is None else claim.delta,
        confidence=confidence,
        changes=changed_records(adjacency, coins=by_coins),
        seed=seed,
    )
    proven = split is not Split.unknown
    condition = "members and non-members are a random split of one pool (say so with --split)"
    epsilon = None if claim is None else claim.epsilon
    return [one_run_section(audit, epsilon, proven=proven, condition=condition)]


def _canaries(
    scorer: Scorer,
    other: Scorer | None,
    listed: Sequence[Any],
    claim: Claim | None,
    confidence: float,
    seed: int,
    bar: Callable[[str], Update],
) -> list[Section]:
    from tacit.audit.models.canaries import canary_section, exposures, observations
    from tacit.audit.models.one_run import (
        SMALLEST_GUESSES,
        Observations,
        audit_observations,
        changed_records,
        fair_subset,
        one_run_section,
    )
    from tacit.guarantee import Adjacency
    from tacit.noise.source import new_source

    if scorer.kind == "classifier":
        raise BadInputError(f"{scorer.name} is a classifier: canaries are texts that a language model can prefer")

    def losses(texts: Sequence[str]) -> Any:
        return scorer.losses(texts, None, bar("scoring canaries")).total

    def baseline(texts: Sequence[str]) -> Any:
        assert other is not None
        return other.losses(texts, None, bar("reference on canaries")).total

    sections = [canary_section(exposures(losses, listed, source=new_source(seed), confidence=confidence))]
    adjacency = Adjacency.ADD_REMOVE if claim is None else claim.adjacency
    by_coins = adjacency is Adjacency.ADD_REMOVE
    levels = sorted({canary.repeats for canary in listed})
    for repeats in levels:
        group = [canary for canary in listed if canary.repeats == repeats]
        if len({canary.included for canary in group}) < 2:
            continue
        observed = observations(losses, group, baseline=None if other is None else baseline)
        if not by_coins:
            into, out = fair_subset(len(observed.included), len(observed.excluded), seed)
            if len(into) < 1 or len(out) < 1:
                continue
            observed = Observations(observed.included[into], observed.excluded[out])
        if observed.canaries < SMALLEST_GUESSES:
            continue
        audit = audit_observations(
            observed,
            delta=USUAL_DELTA if claim is None else claim.delta,
            confidence=1 - (1 - confidence) / len(levels),
            changes=changed_records(adjacency, coins=by_coins, repeats=repeats),
            seed=seed,
        )
        times = "once" if repeats == 1 else f"{repeats} times"
        title = f"Lower bound on epsilon from canaries inserted {times}"
        sections.append(one_run_section(audit, None if claim is None else claim.epsilon, title=title))
    return sections


def _extraction(
    scorer: Any, pair: tuple[Texts, Texts], samples: int, prompts: list[str], seed: int, bar: Callable[[str], Update]
) -> Section:
    from tacit.audit.models.extraction import compare, extraction_section, sample

    written = sample(scorer.model, scorer.tokenizer, prompts, samples=samples, seed=seed, progress=bar("writing texts"))
    return extraction_section(compare(written, pair[0].texts, pair[1].texts, seed=seed), pair[0].texts)


def _memorization(scorer: Any, pair: tuple[Texts, Texts], bar: Callable[[str], Update]) -> Section:
    from tacit.audit.models.memorization import bleu, memorization_section, repeats

    autoencoder = scorer.autoencoder
    bound = autoencoder.record.trained_bound()

    def rewrite(texts: Sequence[str], update: Update) -> list[str]:
        written: list[str] = []
        for start in range(0, len(texts), 64):
            latents = autoencoder.encode(texts[start : start + 64])
            written += autoencoder.decode(latents if bound is None else bound.apply(latents))
            update(len(written), len(texts))
        return written

    seen, unseen = pair[0].texts[:REWRITTEN], pair[1].texts[:REWRITTEN]
    back = rewrite(seen, bar("rewriting members"))
    answers = rewrite(unseen, bar("rewriting non-members"))
    return memorization_section(
        repeats(back, seen, pair[0].texts),
        repeats(answers, unseen, pair[0].texts),
        bleu(back, seen),
        bleu(answers, unseen),
        unseen_texts=unseen,
        outputs=answers,
    )
