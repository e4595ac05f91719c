"""How useful rewritten texts are (DP-BART's protocol), and how much batched beam search gains.

Utility, on Snips (7 intents): rewrite the training and validation texts, train a classifier on them with the original
labels, test it on the ORIGINAL test texts; macro-F1, mean and standard deviation over seeds. Classifier: logistic
regression on word and word-pair counts (tf-idf), or on MiniLM sentence vectors with --classifier minilm. delta 1e-5 as
in the paper. Labels are copied unprotected, as in the paper.

Speed: beam search over one batch of noisy latents, against the same latents one by one (target: 5 times faster).

    python benchmarks/latent.py --quick
    python benchmarks/latent.py --pr bart-pruned --pr-plus 250=bart-250 --pr-plus 500=bart-500 --json numbers.json

Models: those that come with Tacit. DP-BART-PR and -PR+ are made with 'tacit pretrain prune' and 'tacit pretrain noise'.
Nothing is downloaded; the texts are read from the folder TACIT_DATA, or `../shared/data` beside the repository.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

import numpy as np

from corpus import data_folder
from measure import Report, Stopwatch, arguments_parser, say

EPSILONS = (10.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0)
QUICK_EPSILONS = (50.0, 250.0, 1000.0)
DELTA = 1e-5
TARGET = 5.0


def snips(split: str) -> tuple[list[str], list[str]]:
    """Texts and intents of one split."""
    lines = (data_folder() / "snips" / f"{split}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [row[1] for row in rows], [row[0] for row in rows]


def macro_f1(texts: list[str], labels: list[str], classifier: str) -> float:
    """Train on these texts, test on the original test set."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    test, truth = snips("test")
    if classifier == "minilm":
        from tacit.documents.encoder import SentenceEncoder

        encoder = SentenceEncoder("minilm")
        train_vectors, test_vectors = encoder.encode(texts), encoder.encode(test)
    else:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\S+")
        try:
            train_vectors, test_vectors = vectorizer.fit_transform(texts), vectorizer.transform(test)
        except ValueError:  # the rewritten texts have no word left
            return float(f1_score(truth, [max(set(labels), key=labels.count)] * len(truth), average="macro"))
    model = LogisticRegression(max_iter=2000, C=10.0).fit(train_vectors, labels)
    return float(f1_score(truth, model.predict(test_vectors), average="macro"))


def configurations(given: Any, epsilons: tuple[float, ...]) -> list[tuple[str, float, dict[str, Any]]]:
    """Name, epsilon (infinite: no noise) and how to build the mechanism."""
    found: list[tuple[str, float, dict[str, Any]]] = []
    plus = dict(pair.split("=", 1) for pair in given.pr_plus)
    methods = {
        "adept": {"mechanism": "adept", "model": given.adept},
        "clv": {"mechanism": "dp-bart", "variant": "clv", "model": given.bart},
        "pr": {"mechanism": "dp-bart", "variant": "pr", "model": given.pr},
        "narrow": {"mechanism": "narrow", "model": given.narrow},
    }
    for name, options in methods.items():
        if options["model"] and (not given.only or name in given.only):
            found += [(name, epsilon, {**options, "noise": "gaussian"}) for epsilon in epsilons]
            found.append((name, float("inf"), {**options, "noise": "none"}))
    for epsilon, folder in plus.items():
        options = {"mechanism": "dp-bart", "variant": "pr+", "model": folder, "noise": "gaussian"}
        if not given.only or "pr+" in given.only:
            found.append(("pr+", float(epsilon), options))
    return found


def utility(given: Any, report: Report) -> None:
    import sacrebleu

    from tacit.catalog import build

    train, valid = snips("train"), snips("valid")
    texts, labels = train[0] + valid[0], train[1] + valid[1]
    count = given.texts or (1_400 if given.quick else len(texts))
    chosen = np.random.default_rng(0).permutation(len(texts))[:count]
    texts, labels = [texts[i] for i in chosen], [labels[i] for i in chosen]
    seeds = 1 if given.quick else given.seeds
    epsilons = tuple(given.epsilon) or (QUICK_EPSILONS if given.quick else EPSILONS)
    majority = max(set(labels), key=labels.count)
    rows: list[list[str]] = [["original", "", "100.0", f"{macro_f1(texts, labels, given.classifier):.3f}", ""]]
    facts: list[dict[str, Any]] = []
    for name, epsilon, options in configurations(given, epsilons):
        values = {key: value for key, value in options.items() if key != "mechanism"}
        infinite = epsilon == float("inf")
        values |= {"epsilon": 1.0 if infinite else epsilon, "beams": given.beams, "batch_size": 64, "delta": DELTA}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model may be used at an epsilon it was not trained for
            mechanism = build(options["mechanism"], values)
            scores, bleus, spent = [], [], []
            for _ in range(1 if infinite else seeds):
                start = time.process_time()
                released = mechanism.rewrite(texts).texts
                spent.append(time.process_time() - start)
                scores.append(macro_f1(released, labels, given.classifier))
                bleus.append(sacrebleu.corpus_bleu(released, [texts], lowercase=True).score)
        spread = statistics.pstdev(scores)
        shown = "no noise" if infinite else f"{epsilon:g}"
        rows.append(
            [name, shown, f"{np.mean(bleus):.2f}", f"{np.mean(scores):.3f} ({spread:.3f})", f"{np.mean(spent):.0f}"]
        )
        say(" ".join(rows[-1]))
        facts.append({"method": name, "epsilon": shown, "bleu": bleus, "macro_f1": scores, "cpu_seconds": spent})
    report.facts["utility"] = facts
    report.table(
        f"Snips, {len(texts):,} rewritten training texts, test on 700 originals ({given.classifier})",
        ["method", "epsilon", "BLEU", "macro-F1 (std)", "CPU s"],
        rows,
    )
    guess = 2 * (labels.count(majority) / len(labels)) / (1 + labels.count(majority) / len(labels)) / len(set(labels))
    report.notes.append(f"always guessing the most frequent intent has a macro-F1 of about {guess:.2f}; delta {DELTA}")


def speed(given: Any, report: Report) -> None:
    from tacit.documents.autoencoders import load_autoencoder

    model = load_autoencoder(given.bart)
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
    parser.add_argument("--quick", action="store_true", help="fewer texts and epsilons, one seed")
    parser.add_argument("--bart", default="bart-20")
    parser.add_argument("--adept", default="adept-20")
    parser.add_argument("--narrow", default="narrow-20")
    parser.add_argument("--pr", default="", metavar="FOLDER", help="a pruned BART")
    parser.add_argument("--pr-plus", action="append", default=[], metavar="EPSILON=FOLDER")
    parser.add_argument("--epsilon", action="append", type=float, default=[])
    parser.add_argument("--only", action="append", default=[], choices=["adept", "clv", "pr", "pr+", "narrow"])
    parser.add_argument("--texts", type=int, default=0, help="how many texts to rewrite (default: all)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--classifier", choices=["words", "minilm"], default="words")
    parser.add_argument("--part-only", choices=["utility", "speed"])
    given = parser.parse_args()
    report = Report("latent")
    if given.part_only != "utility":
        speed(given, report)
    if given.part_only != "speed":
        utility(given, report)
    report.show(given.json)


if __name__ == "__main__":
    main()
