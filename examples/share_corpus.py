"""Release a corpus in place of private rows, and see what it is worth: `python examples/share_corpus.py [FOLDER]`.

4,000 requests to an assistant (Snips NLU benchmark, CC0) are the private file. Three unrelated learners are trained on
the private rows and on the released ones, and tested on 700 other private rows; an attacker who knows all other rows
tries to find out whether a row is in the data. Needs a plain installation, and half a minute.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import tacit
from tacit.atomic import write_file
from tacit.card.summary import five_lines
from tacit.evaluation.corpus import CorpusScores, Labeled
from tacit.jobs.fields import USUAL_POOLS
from tacit.jobs.private_report import HeldRows, attack_sentence, judged, private_page
from tacit.jobs.release_report import first_rows, public_release, shown_rows
from tacit.matching.artifact import read_sketch
from tacit.matching.composing import parts_of
from tacit.matching.pool import load_pool
from tacit.matching.subjects import without_subjects

HERE = Path(__file__).parent
EPSILON = 1.0
WIDTH = 100


def read(path: Path) -> Labeled:
    """Texts and their labels."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Labeled([row["text"] for row in rows], [row["intent"] for row in rows])


def main() -> None:
    """Release the corpus, show it, score it, attack it, and write two reports."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    private, test = read(HERE / "requests.csv"), read(HERE / "requests_test.csv")
    start = time.perf_counter()
    made = tacit.synthesize(
        HERE / "requests.csv", column="text", label_column="intent", labels=sorted(set(test.labels)), epsilon=EPSILON,
        output=folder / "released.csv", report="shareable", force=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    labels = list(made.columns["intent"])
    heading(f"{len(private):,} private requests -> {len(made):,} rows that may be shared ({seconds:.0f} s)")
    pools = [load_pool(name) for name in USUAL_POOLS]
    release = public_release(read_sketch(made.sketch_path), pools, made.texts, labels, made.card)
    show_rows(shown_rows(release, sorted(set(labels))), first_rows(private.texts, private.labels, labels))

    held = HeldRows(private.texts, private.labels, test)
    judgment = judged(release, held)
    show_scores(judgment.scores)
    heading("What an attacker makes of it")
    print(textwrap.fill(attack_sentence(judgment.attack), WIDTH))
    public = {sentence for pool in pools for sentence in pool.sentences}
    sentences = without_subjects(made.texts, sorted(set(labels)))
    foreign = sum(parts_of(text, public) is None for text in sentences)
    print(f"Rows that are not made of public sentences, after the name of their label: {foreign}.")

    heading("The card in five lines")
    for name, words in five_lines(made.card):
        print(textwrap.fill(words, WIDTH, initial_indent=f"{name:14}", subsequent_indent=" " * 14))
    page = folder / "released-PRIVATE-report.html"
    write_file(page, private_page(release, held, judgment).encode(), private=True)
    heading("To look at")
    print(f"report to share with the corpus   {made.report_path}")
    print(f"PRIVATE report, for you alone     {page}")
    print(f"corpus, card, sketch              {folder}")


def heading(words: str) -> None:
    print(f"\n{words}\n{'-' * len(words)}")


def show_rows(released: dict[str, list[str]], private: dict[str, list[str]]) -> None:
    """Ten released rows of each label, under a private row."""
    print(f"  {'five that fit the label best':48}five at random")
    for label, texts in released.items():
        print(f"{label}   (a private row: {textwrap.shorten(private[label][0], WIDTH - len(label) - 20)})")
        half = (len(texts) + 1) // 2
        for left, right in zip(texts[:half], [*texts[half:], ""], strict=False):
            print(f"  {textwrap.shorten(left, 46, placeholder=' …'):48}{textwrap.shorten(right, 48, placeholder=' …')}")


def show_scores(scores: CorpusScores | None) -> None:
    """What learners score that were trained on private and on released rows."""
    assert scores is not None
    heading(f"Macro-F1 on {scores.test_rows} other private requests, by what a learner was trained on")
    print(f"{'':16}{'private rows':>14}{'released rows':>15}")
    for each in scores.learners:
        print(f"{each.learner:16}{each.original.macro_f1.value:14.3f}{each.released.macro_f1.value:15.3f}")
    print(f"{'the worst':30}{scores.worst.released.macro_f1.value:15.3f}   (guessing: {scores.floor.value:.3f})")


if __name__ == "__main__":
    main()
