"""`tacit audit mechanism`: hold a privacy claim against the law or the samples of a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.reports import FailOnOption, deliver, progress_bars, step_of
from tacit.errors import BadInputError, BadParameterError

if TYPE_CHECKING:
    from tacit.audit.claims.claim import Claim
    from tacit.audit.claims.laws import Stranger
    from tacit.report import Section

PUBLISHED_ADEPT = "published-adept"
SAMPLED_PAIRS = 10
REWRITER_SAMPLES = 1_000


def mechanism(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A mechanism of 'tacit mechanisms', or published-adept.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="Its budget; with --matrix or --callable, what is claimed.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="With --matrix or --callable: the claimed delta.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Another option of the mechanism; may be repeated."),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(help="Public word vectors; with --matrix or --callable, the claim is metric in their distance."),
    ] = None,
    matrix: Annotated[
        Path | None,
        typer.Option(help="Check this CSV of probabilities: outputs in the header, a row per input, its name first."),
    ] = None,
    callable: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION",
            help="Check a function: word -> probabilities, text -> text, or (word, count) -> outputs. It is run.",
        ),
    ] = None,
    metric: Annotated[
        Path | None,
        typer.Option(help="With --matrix or --callable: a CSV of distances; the claim is epsilon times distance."),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(help="Inputs to check: all, a number, closest:K pairs, or a file with one per line."),
    ] = None,
    samples: Annotated[int | None, typer.Option(help="Also draw so many samples of each input.")] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of verdicts from samples.")] = 0.999,
    tolerance: Annotated[float, typer.Option(help="What arithmetic may add to an exact loss.")] = 1e-9,
    deniability: Annotated[
        bool, typer.Option("--deniability", help="Also how often words stay, and among how many they hide.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Repeatable samples, for tests.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json-file", help="Write the JSON object to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing reports.")] = False,
    fail_on: FailOnOption = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar.")] = False,
) -> None:
    """Check a privacy claim: exactly where the law is known, from samples where it is not.

    Works for every word mechanism, the codebook, the latent mechanisms, and for a matrix or a function that somebody
    else wrote. Exit code 3 means that the claim was refuted, or that --fail-on says so; the report names the inputs and
    the output that show it.

    Example: tacit audit mechanism santext --epsilon 2 --html audit.html
    """
    from tacit.report import Report
    from tacit.report.parts import refuse_existing

    if sum(given is not None for given in (name, matrix, callable)) != 1:
        raise BadParameterError("say what to audit: the name of a mechanism, or --matrix FILE, or --callable FUNCTION")
    for path in (html, json_file):
        if path is not None:
            refuse_existing(path, force=force)
    if html is not None and html.suffix == ".json":
        raise BadParameterError(f"--html writes a page: name it {html.with_suffix('.html').name}, or use --json-file")
    if json_file is not None and json_file.suffix != ".json":
        raise BadParameterError(f"a report for machines ends in .json: name it {json_file.with_suffix('.json').name}")
    if name is not None and (delta is not None or metric is not None):
        raise BadParameterError(f"what {name} claims is on its card: leave out --delta and --metric (or use --option)")
    if name is None and (deniability or option):
        raise BadParameterError("--deniability and --option need the name of a mechanism")
    from tacit.audit.claims.mechanisms import Settings

    report = Report(f"Audit of {name or Path(str(matrix or callable).rpartition(':')[0] or str(matrix)).name}")
    report.facts = {"epsilon": epsilon, "confidence": confidence, "words": words, "samples": samples}
    with progress_bars(shown=not quiet) as told:
        settings = Settings(words, samples, confidence, tolerance, seed, step_of(told))
        if name is not None:
            report.sections += _named(name, epsilon, vectors, option or [], settings, deniability, html is not None)
        elif matrix is not None:
            report.sections.append(_matrix(matrix, epsilon, delta, metric, vectors, settings))
        else:
            report.sections += _function(str(callable), epsilon, delta, metric, vectors, settings)
    deliver(report, html, json_file, as_json=as_json, force=force, fail_on=fail_on)


# Our mechanisms -------------------------------------------------------------------------------------------------------


def _named(
    name: str,
    epsilon: float | None,
    vectors: str | None,
    pairs: list[str],
    settings: Any,
    with_deniability: bool,
    drawn: bool,
) -> list[Section]:
    from tacit.audit.claims.mechanisms import audit_latents, audit_mechanism
    from tacit.catalog import build
    from tacit.cli.rewrite import mechanism_options

    options = mechanism_options(epsilon, vectors, pairs)
    if name == PUBLISHED_ADEPT:
        from tacit.audit.claims.claim import Claim
        from tacit.documents.adept import PublishedAdept

        if epsilon is None:
            raise BadParameterError("published-adept needs epsilon, for example --epsilon 2")
        known = {"epsilon": float, "model": str, "clip": float}
        wrong = [key for key in options if key not in known]
        if wrong:
            raise BadParameterError(f"published-adept has no option '{wrong[0]}': its options are model and clip")
        broken = PublishedAdept(**{key: known[key](value) for key, value in options.items()})
        return audit_latents(broken, Claim(broken.epsilon), settings)
    mechanism = build(name, options)
    if with_deniability and mechanism.level != "word":
        raise BadParameterError(f"--deniability is about words, and {name} rewrites whole documents: leave it out")
    sections = audit_mechanism(mechanism, settings)
    if with_deniability:
        from tacit.evaluate.deniability import EPSILONS, deniability_section, over_epsilon

        epsilons = sorted({*EPSILONS, mechanism.epsilon}) if mechanism.every_epsilon else [mechanism.epsilon]
        found = over_epsilon(mechanism, epsilons, seed=settings.seed, progress=settings.bar("deniability"))
        sections.append(deniability_section(found, shown=mechanism.epsilon, draw=drawn))
    return sections


# What somebody else made ----------------------------------------------------------------------------------------------


def _matrix(
    path: Path, epsilon: float | None, delta: float | None, metric: Path | None, vectors: str | None, settings: Any
) -> Section:
    from tacit.audit.claims.exact import exact_section
    from tacit.audit.claims.laws import read_matrix

    law = read_matrix(path)
    claim = _claim(epsilon, delta, metric, vectors, law.inputs)
    return exact_section(_exact(law, claim, settings))


def _exact(law: Any, claim: Claim, settings: Any) -> Any:
    from tacit.audit.claims.exact import check_all, check_pairs, words_of
    from tacit.audit.claims.mechanisms import listed

    words, bar = settings.words, settings.bar("exact law")
    if words is None or words == "all" or (words.isdigit() and int(words) >= len(law.inputs)):
        return check_all(law, claim, tolerance=settings.tolerance, progress=bar)
    if words.startswith("closest:") and words[8:].isdigit() and int(words[8:]) > 0:
        if claim.distance is None:
            raise BadParameterError("closest pairs need distances: give --metric FILE or --vectors NAME")
        return check_pairs(law, claim, claim.distance.closest(int(words[8:])), tolerance=settings.tolerance)
    if words.isdigit():
        import numpy as np

        return check_all(law, claim, np.arange(int(words)), tolerance=settings.tolerance, progress=bar)
    return check_all(law, claim, words_of(law, listed(words)), tolerance=settings.tolerance, progress=bar)


def _claim(epsilon: float | None, delta: float | None, metric: Path | None, vectors: str | None, inputs: Any) -> Claim:
    """What is claimed about the inputs of a matrix or a function."""
    import numpy as np

    from tacit.audit.claims.claim import Claim, Distance, TableDistance, VectorDistance
    from tacit.audit.claims.laws import read_table

    if epsilon is None:
        raise BadParameterError("say what is claimed, for example --epsilon 2")
    if metric is not None and vectors is not None:
        raise BadParameterError("--metric and --vectors both give distances: leave one out")
    distance: Distance | None = None
    if metric is not None:
        rows, columns, values = read_table(metric)
        places = {row: i for i, row in enumerate(rows)}, {column: i for i, column in enumerate(columns)}
        missing = [name for name in inputs if name not in places[0] or name not in places[1]]
        if missing:
            raise BadInputError(f"{metric} has no distances for '{missing[0]}': give a row and a column for each input")
        ids = [np.array([place[name] for name in inputs]) for place in places]
        distance = TableDistance(values[np.ix_(*ids)])
    elif vectors is not None:
        from tacit.vectors import load_vectors

        table = load_vectors(vectors).subset([str(name) for name in inputs])
        distance = VectorDistance(table.vectors, f"Euclidean distance of {table.name} vectors")
    return Claim(epsilon, delta=delta or 0.0, distance=distance)


def _function(
    place: str, epsilon: float | None, delta: float | None, metric: Path | None, vectors: str | None, settings: Any
) -> list[Section]:
    import numpy as np

    from tacit.audit.claims.exact import exact_section
    from tacit.audit.claims.laws import law_of, load_stranger
    from tacit.audit.claims.mechanisms import listed

    if settings.words is None:
        raise BadParameterError("give the words to try the function with: --words FILE, one per line")
    words = listed(settings.words)
    claim = _claim(epsilon, delta, metric, vectors, words)
    stranger = load_stranger(place)
    if stranger.samples:
        return [_sampled(lambda i, count: np.asarray(list(stranger(words[i], count))), words, claim, settings)]
    first = stranger(words[0])
    if not isinstance(first, str):
        law = law_of(stranger, words, first=first)
        from dataclasses import replace

        return [exact_section(_exact(law, claim, replace(settings, words="all")))]
    return _rewriter(stranger, words, claim, settings)


def _rewriter(stranger: Stranger, words: list[str], claim: Claim, settings: Any) -> list[Section]:
    """text -> text: its outputs are counted, and made-up words are tried."""
    from dataclasses import replace

    import numpy as np

    from tacit.audit.claims.secrets import secrets_check, secrets_section

    def texts(inputs: list[str]) -> list[str]:
        answers = [stranger(text) for text in inputs]
        if not all(isinstance(answer, str) for answer in answers):
            raise BadInputError(f"{stranger.name} returns a text for some inputs and not for others: always return one")
        return answers

    few = replace(settings, samples=settings.samples or REWRITER_SAMPLES)
    counted = _sampled(lambda i, count: np.asarray(texts([words[i]] * count)), words, claim, few)
    if claim.is_metric:
        return [counted]
    found = secrets_check(texts, claim.epsilon, delta=claim.delta, confidence=settings.confidence, seed=settings.seed)
    return [counted, secrets_section(found)]


def _sampled(sample: Callable[[int, int], Any], words: list[str], claim: Claim, settings: Any) -> Section:
    import numpy as np

    from tacit.audit.claims.mechanisms import SAMPLES
    from tacit.audit.claims.sampling import sampled_check, sampled_section
    from tacit.audit.claims.scores import Agreement, MeanDirection, NearerTo, OutputRatio, Score
    from tacit.noise.source import public_generator

    if claim.distance is not None:
        pairs = claim.distance.closest(SAMPLED_PAIRS)
    else:
        pairs = np.stack(np.triu_indices(len(words), 1), axis=1)
        pairs = public_generator(0).permutation(pairs)[:SAMPLED_PAIRS]
    trial = np.asarray(sample(0, 1))
    scores: list[Score] = [OutputRatio()]
    if trial.dtype.kind == "f":
        scores = [MeanDirection(), NearerTo(1), NearerTo(2)]
    if trial.ndim >= 2 and trial.shape[1] == 2:
        scores.append(Agreement())
    found = sampled_check(
        sample,
        claim,
        pairs,
        scores,
        samples=settings.samples or SAMPLES,
        confidence=settings.confidence,
        names=words,
        progress=settings.bar("sampling"),
    )
    return sampled_section(found)
