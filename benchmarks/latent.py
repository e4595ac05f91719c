"""How useful texts are that went through a noisy latent (DP-BART's protocol), and how much batched beam search gains.

Utility, on Snips (7 intents): rewrite the training and validation texts, train a classifier on them with the original
labels, test it on the ORIGINAL test texts; macro-F1, mean and standard deviation over draws of the noise. Classifiers:
logistic regression on word and word-pair counts (tf-idf), and on MiniLM sentence vectors with --classifier minilm.
delta 1e-5 as in the paper. Labels are copied unprotected, as in the paper. Ceiling: the same classifier on the original
texts. Floors: always the most frequent intent, and the classifier trained on labels in random order.

Speed: beam search over one batch of noisy latents, against the same latents one by one (target: 5 times faster).

    python benchmarks/latent.py                                    the whole table
    python benchmarks/latent.py --classifier minilm                the same rewritten texts, other classifier
    python benchmarks/latent.py --quick                            one draw, three epsilons
    python benchmarks/latent.py --task clinc                       ten intents of CLINC150 instead of Snips

Settings of a training are chosen on public text and on --task clinc, so that Snips stays a test.

Every cell (method, epsilon, draw) is kept in the folder --work together with the rewritten texts, so a run that was
stopped goes on where it was; a model that has changed is measured again.

Models: `adept`, `clv` and `narrow` are those that come with Tacit. As in the paper, `clv` has a BART that was trained
without clipping; `clv-clipped` has the one that was trained with it. The pruned and the noisy-trained BARTs (`pr`,
`pr+`) are too many to come with it: --train PUBLIC_TEXT makes them from the BART of `clv` with the commands in
TRAINING, about half an hour on one core, in the folder --models. Without them their rows are left out.
Nothing is downloaded; Snips and CLINC150 are read from the folder TACIT_DATA, or `../shared/data` beside this one.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import statistics
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from corpus import cache_folder, data_folder
from measure import Report, Stopwatch, arguments_parser, say

EPSILONS = (10.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0)
QUICK_EPSILONS = (50.0, 250.0, 1000.0)
METHODS = ("adept", "clv", "pr", "pr+", "clv-clipped", "narrow")
BARTS = {"clv": "bart-20-unclipped", "clv-clipped": "bart-20"}
DELTA = 1e-5
TARGET = 5.0

NOISY = {2500: "bart-pr+2500", 1000: "bart-pr+1000", 500: "bart-pr+500-half", 250: "bart-pr+250-half",
         100: "bart-pr+10", 50: "bart-pr+10", 10: "bart-pr+10"}  # fmt: skip
"""The DP-BART-PR+ model of each epsilon."""
COMMON = "--batch 64 --learning-rate 0.0007 --held-out 500 --plain-share 0.25"
NOISE = f"--delta 1e-5 --evaluate-every 300 --mixed-share 0.5 --content 0.01 {COMMON}"
TRAINING = [
    f"prune bart-20-unclipped {{text}} -o bart-pr --clip 0.25 --dropout 0.1 --mixed-share 0.2 --steps 300 {COMMON}",
    # From little noise to much, each model the start of the next.
    f"noise bart-pr {{text}} -o bart-pr+2500 --epsilon 2500 --steps 600 {NOISE}",
    f"noise bart-pr+2500 {{text}} -o bart-pr+1000 --epsilon 1000 --steps 600 {NOISE}",
    f"noise bart-pr+1000 {{text}} -o bart-pr+500 --epsilon 500 --steps 600 {NOISE}",
    f"noise bart-pr+500 {{text}} -o bart-pr+250 --epsilon 250 --steps 600 {NOISE}",
    f"noise bart-pr+250 {{text}} -o bart-pr+10 --epsilon 100 --epsilon 50 --epsilon 10 --steps 200 {NOISE}",
    # Much noise makes a decoder forget words: halfway back to the pruned model.
    "average bart-pr bart-pr+500 {text} -o bart-pr+500-half --share 0.5 --held-out 500",
    "average bart-pr bart-pr+250 {text} -o bart-pr+250-half --share 0.5 --held-out 500",
]


# Data and classifiers ---------------------------------------------------------------------------------------------


@cache
def snips(split: str) -> tuple[list[str], list[str]]:
    """Texts and intents of one split."""
    rows = _rows("snips", split)
    return [row[1] for row in rows], [row[0] for row in rows]


@cache
def clinc(split: str) -> tuple[list[str], list[str]]:
    """Texts and intents of one split: every fifteenth intent, ten in all."""
    chosen = sorted({row[0] for row in _rows("clinc150", "train")} - {"oos"})[::15]
    rows = [row for row in _rows("clinc150", {"valid": "val"}.get(split, split)) if row[0] in chosen]
    return [row[1] for row in rows], [row[0] for row in rows]


TASKS = {"snips": snips, "clinc": clinc}


def _rows(name: str, split: str) -> list[list[str]]:
    path = data_folder() / name / f"{split}.tsv"
    if not path.is_file():
        raise SystemExit(f"{name}/{split}.tsv is not here: set TACIT_DATA to a folder that has it")
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def training_part(task: str, count: int) -> tuple[list[str], list[str]]:
    """A fixed sample of the training and validation texts, with their intents."""
    train, valid = TASKS[task]("train"), TASKS[task]("valid")
    texts, labels = train[0] + valid[0], train[1] + valid[1]
    chosen = np.random.default_rng(0).permutation(len(texts))[: count or len(texts)]
    return [texts[i] for i in chosen], [labels[i] for i in chosen]


@cache
def sentence_encoder() -> Any:
    from tacit.documents.encoder import SentenceEncoder

    return SentenceEncoder("minilm", pieces=48)


@cache
def test_vectors(task: str) -> Any:
    return sentence_encoder().encode(TASKS[task]("test")[0])


def macro_f1(texts: list[str], labels: list[str], task: str, classifier: str) -> float:
    """Train on these texts, test on the original test set."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    test, truth = TASKS[task]("test")
    if classifier == "minilm":
        known, asked = sentence_encoder().encode(texts), test_vectors(task)
    else:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\S+")
        try:
            known, asked = vectorizer.fit_transform(texts), vectorizer.transform(test)
        except ValueError:  # the rewritten texts have no word left
            return majority_f1(labels, task)
    model = LogisticRegression(max_iter=2000, C=10.0).fit(known, labels)
    return float(f1_score(truth, model.predict(asked), average="macro"))


def majority_f1(labels: list[str], task: str) -> float:
    from sklearn.metrics import f1_score

    truth = TASKS[task]("test")[1]
    return float(f1_score(truth, [max(sorted(set(labels)), key=labels.count)] * len(truth), average="macro"))


# Cells ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One method at one epsilon (infinite: no noise)."""

    method: str
    epsilon: float
    model: str
    options: tuple[tuple[str, Any], ...]

    @property
    def shown(self) -> str:
        return "no noise" if self.epsilon == float("inf") else f"{self.epsilon:g}"


def cells(given: Any, epsilons: tuple[float, ...]) -> list[Cell]:
    """All cells whose models exist."""
    found: list[Cell] = []
    pruned = given.models / "bart-pr"
    for method in given.only or METHODS:
        for epsilon in (*epsilons, float("inf")):
            noise = "none" if epsilon == float("inf") else "gaussian"
            if method == "adept":
                found.append(Cell(method, epsilon, given.adept, (("mechanism", "adept"), ("noise", noise))))
            elif method in BARTS:
                options = (("mechanism", "dp-bart"), ("variant", "clv"), ("noise", noise))
                found.append(Cell(method, epsilon, BARTS[method], options))
            elif method == "pr" and (pruned / "tacit.json").exists():
                options = (("mechanism", "dp-bart"), ("variant", "pr"), ("noise", noise))
                found.append(Cell(method, epsilon, str(pruned), options))
            elif method == "pr+" and epsilon != float("inf"):
                trained = given.models / NOISY.get(int(epsilon), "none")
                if (trained / "tacit.json").exists():
                    options = (("mechanism", "dp-bart"), ("variant", "pr+"), ("noise", noise))
                    found.append(Cell(method, epsilon, str(trained), options))
            elif method == "narrow":
                trained_noise = "none" if noise == "none" else "trained"
                found.append(Cell(method, epsilon, given.narrow, (("mechanism", "narrow"), ("noise", trained_noise))))
    return found


def mechanism(cell: Cell, beams: int) -> Any:
    from tacit.catalog import build

    values = dict(cell.options)
    name = values.pop("mechanism")
    values |= {"epsilon": 1.0 if cell.epsilon == float("inf") else cell.epsilon, "delta": DELTA}
    values |= {} if name == "adept" else {"beams": beams}  # the table has ADePT greedy
    return build(name, {**values, "batch_size": 64, **({"model": cell.model} if cell.model else {})})


def identity(built: Any, cell: Cell, given: Any) -> str:
    """What a kept cell depends on: the method, C, how much is rewritten, and the weights."""
    from tacit.documents.autoencoders.built_in import built_in_folder

    folder = built_in_folder(built.model_name) or Path(built.model_name)
    state = hashlib.blake2b(digest_size=6)
    for path in sorted(folder.glob("*.safetensors")):
        state.update(path.read_bytes())
    shown = f"{cell.method}-{cell.shown.replace(' ', '-')}-C{built.bound.C:g}"
    task = "" if given.task == "snips" else f"{given.task}-"
    return f"{task}{shown}-{given.texts}x{given.beams}-{state.hexdigest()}"


def released(built: Any, path: Path, texts: list[str]) -> list[str]:
    """The rewritten texts of one draw, from the folder if they were made before."""
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [line.rstrip("\n") for line in lines]
    start = time.process_time()
    found = [" ".join(text.split()) for text in built.rewrite(texts).texts]
    say(f"{path.name.split('.')[0]}: rewritten in {time.process_time() - start:.0f} CPU s")
    draft = path.with_suffix(".partial")
    with gzip.open(draft, "wt", encoding="utf-8") as lines:
        lines.writelines(f"{text}\n" for text in found)
    draft.replace(path)
    return found


def results(path: Path) -> dict[str, dict[str, float]]:
    """The cells that were measured before."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def measured(cell: Cell, draw: int, given: Any, texts: list[str], labels: list[str]) -> dict[str, float] | None:
    """macro-F1 and BLEU of one draw, kept in results.json; None if it is not there and nothing is to be computed."""
    import sacrebleu

    path = given.work / "results.json"
    kept = results(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model may be used at an epsilon it was not trained for
        built = mechanism(cell, given.beams)
        name = f"{identity(built, cell, given)}-{draw}"
        key = f"{name}-{given.classifier}"
        if key not in kept and given.kept:
            return None
        found = [] if key in kept else released(built, given.work / f"{name}.txt.gz", texts)
    if key not in kept:
        bleu = sacrebleu.corpus_bleu(found, [texts], lowercase=True).score
        fresh = {"macro_f1": macro_f1(found, labels, given.task, given.classifier), "bleu": bleu}
        kept = {**results(path), key: fresh}  # read again: another run may have added cells
        draft = path.with_suffix(".partial")
        draft.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
        say(f"{cell.method} {cell.shown}, draw {draw + 1}: macro-F1 {kept[key]['macro_f1']:.3f}, BLEU {bleu:.1f}")
    return kept[key]


def utility(given: Any, report: Report) -> None:
    given.work.mkdir(parents=True, exist_ok=True)
    texts, labels = training_part(given.task, given.texts)
    epsilons = tuple(given.epsilon) or (QUICK_EPSILONS if given.quick else EPSILONS)
    draws = 1 if given.quick else given.draws
    columns = [*(f"{epsilon:g}" for epsilon in epsilons), "no noise"]
    facts: list[dict[str, Any]] = []
    table: dict[str, dict[str, str]] = {}
    for cell in cells(given, epsilons):
        count = 1 if cell.epsilon == float("inf") else draws
        tried = [measured(cell, draw, given, texts, labels) for draw in range(count)]
        found = [one for one in tried if one is not None]
        if not found:
            continue
        scores = [one["macro_f1"] for one in found]
        spread = f" ({statistics.stdev(scores):.3f})" if len(scores) > 1 else ("" if count == 1 else " (1 draw)")
        table.setdefault(cell.method, {})[cell.shown] = f"{statistics.mean(scores):.3f}{spread}"
        facts.append(
            {"method": cell.method, "epsilon": cell.shown, "macro_f1": scores, "bleu": [one["bleu"] for one in found]}
        )
    shuffled = [labels[i] for i in np.random.default_rng(1).permutation(len(labels))]
    ends = {
        "original": macro_f1(texts, labels, given.task, given.classifier),
        "random labels": macro_f1(texts, shuffled, given.task, given.classifier),
        "most frequent": majority_f1(labels, given.task),
    }
    report.facts["utility"] = {
        "cells": facts,
        **ends,
        "task": given.task,
        "classifier": given.classifier,
        "texts": len(texts),
    }
    report.table(
        f"{given.task}, {len(texts):,} rewritten training texts, tested on originals: macro-F1 ({given.classifier})",
        ["method", *columns],
        [[method, *(row.get(column, "") for column in columns)] for method, row in table.items()],
    )
    report.notes.append(
        f"ceiling (original texts) {ends['original']:.3f}; floors: most frequent intent {ends['most frequent']:.3f}, "
        f"labels in random order {ends['random labels']:.3f}; {draws} draws, standard deviation in brackets; "
        f"delta {DELTA:g}, {given.beams} beams"
    )
    missing = [method for method in given.only or METHODS if method not in table]
    if missing:
        report.notes.append(f"no models for {' and '.join(missing)}: make them with --train PUBLIC_TEXT")


# Models that do not come with Tacit ---------------------------------------------------------------------------------


def make_models(text: Path, name: str, folder: Path, share: float) -> None:
    """DP-BART-PR, then -PR+ from little noise to much. What is complete is left alone.

    share   of the steps; a small one shows that all of it runs, with two stages of pruning, and makes useless models
    """
    folder.mkdir(parents=True, exist_ok=True)
    for line in TRAINING:
        words = [str(text.resolve()) if word == "{text}" else word for word in line.split()]
        if share != 1 and "--steps" in words:
            place = words.index("--steps") + 1
            words[place] = str(max(2, round(share * int(words[place]))))
            words += ["--least-bleu", "0", "--stages", "2"] if words[0] == "prune" else []
        made = folder / words[words.index("-o") + 1]
        if (made / "tacit.json").exists() and not (made / "checkpoint.pt").exists():
            continue
        say(f"tacit pretrain {line.format(text=text.name)}")
        start = [sys.executable, "-c", "from tacit.cli.main import main; main()", "pretrain"]
        words += ["--public", name, "--half", *(["--resume"] if "--steps" in words else [])]
        if subprocess.run([*start, *words], cwd=folder, check=False).returncode:
            raise SystemExit("training failed; the same command goes on from the last checkpoint")


# Speed ------------------------------------------------------------------------------------------------------------


def speed(given: Any, report: Report) -> None:
    from tacit.documents.autoencoders import load_autoencoder

    model = load_autoencoder(BARTS["clv-clipped"])
    texts = snips("test")[0][: 64 if given.quick else 256]
    latents = model.encode(texts)
    model.decode(latents[:2], beams=given.beams)
    watch = Stopwatch()
    with watch.lap("one by one"):
        single = [model.decode(one[np.newaxis], beams=given.beams)[0] for one in latents]
    with watch.lap("batched"):
        batched = model.decode(latents, beams=given.beams)
    ratio = watch.cpu("one by one") / watch.cpu("batched")
    rows = [
        [name, f"{len(texts) / watch.cpu(name):,.0f}", f"{len(texts) / watch.laps[name].wall:,.0f}"]
        for name in ("one by one", "batched")
    ]
    report.table(f"Beam search, {given.beams} beams, {len(texts)} texts", ["", "texts / CPU s", "texts / wall s"], rows)
    same = sum(a == b for a, b in zip(single, batched, strict=True))
    report.notes.append(
        f"batched is {ratio:.1f} times as fast (target {TARGET:g}: {'met' if ratio >= TARGET else 'MISSED'}); "
        f"{same} of {len(texts)} texts are the same"
    )
    report.facts["speed"] = {**watch.as_facts(), "ratio": ratio, "same": same, "texts": len(texts)}


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="three epsilons, one draw")
    parser.add_argument("--adept", default="adept-20")
    parser.add_argument("--narrow", default="", help="a narrow model (default: the built-in one for each epsilon)")
    parser.add_argument("--epsilon", action="append", type=float, default=[])
    parser.add_argument("--only", action="append", default=[], choices=METHODS)
    parser.add_argument("--task", choices=list(TASKS), default="snips", help="clinc: to choose settings on")
    parser.add_argument("--texts", type=int, default=1_400, help="how many texts to rewrite (0: all 13,784)")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--classifier", choices=["words", "minilm"], default="words")
    parser.add_argument("--kept", action="store_true", help="show what was measured before, compute no cell")
    parser.add_argument("--work", type=Path, default=None, metavar="FOLDER", help="where cells are kept")
    parser.add_argument("--models", type=Path, default=None, metavar="FOLDER", help="where the pruned models are")
    parser.add_argument("--train", type=Path, metavar="PUBLIC_TEXT", help="make the pruned models from this text")
    parser.add_argument("--share", type=float, default=1.0, help="share of the training steps, to try --train out")
    parser.add_argument("--public", default="", metavar="NAME", help="the name the public text is known by")
    parser.add_argument("--part-only", choices=["utility", "speed"])
    given = parser.parse_args()
    given.work = given.work or cache_folder() / "latent"
    if given.train:
        if not given.public:
            raise SystemExit("name the public text with --public NAME: models learn from public text only")
        if given.share != 1 and given.models is None:
            raise SystemExit("models with few steps are no good: keep them apart with --models FOLDER")
    given.models = given.models or cache_folder() / "latent-models"
    if given.train:
        make_models(given.train, given.public, given.models, given.share)
    report = Report("latent")
    if given.part_only != "utility":
        speed(given, report)
    if given.part_only != "speed":
        utility(given, report)
    report.show(given.json)


if __name__ == "__main__":
    main()
