"""Release a corpus in place of private rows, and see what it is good for: `python examples/share_corpus.py [FOLDER]`.

4,000 requests to an assistant (Snips NLU benchmark, CC0) are the private file. Three learners are trained on the
private rows and on the released ones, and tested on 700 other private rows: on words, on runs of four letters, which
share nothing with the release, and on vectors of the static encoder, by which the release was made. Needs a plain
installation, and half a minute.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from pathlib import Path

import tacit
from tacit.evaluation.corpus import Labeled, corpus_scores
from tacit.jobs.synthesize import USUAL_POOLS
from tacit.matching.pool import load_pool

HERE = Path(__file__).parent
EPSILON = 1.0
SHOWN = 5
"""Released rows that are shown of each label, as they come."""


def read(path: Path) -> Labeled:
    """Texts and their labels."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return Labeled([row["text"] for row in rows], [row["intent"] for row in rows])


def main() -> None:
    """Release the corpus, show it, and score it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    private, test = read(HERE / "requests.csv"), read(HERE / "requests_test.csv")
    start = time.perf_counter()
    made = tacit.synthesize(
        HERE / "requests.csv", column="text", label_column="intent", labels=sorted(set(test.labels)), epsilon=EPSILON,
        output=folder / "released.csv", force=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    released = Labeled(made.columns["text"], made.columns["intent"])

    print(f"{len(private):,} private requests -> {len(made):,} rows that may be shared, in {seconds:.0f} s\n")
    for label in sorted(set(released.labels)):
        texts = [text for text, other in zip(released.texts, released.labels, strict=True) if other == label]
        print(label, *list(dict.fromkeys(texts))[:SHOWN], sep="\n    ")

    print("\nmacro-F1 on 700 other private requests, for a learner trained on")
    print(f"{'':12}{'private rows':>14}{'released rows':>15}")
    scores = corpus_scores(private, released, test)
    for each in scores.learners:
        print(f"{each.learner:16}{each.original.macro_f1.value:10.3f}{each.released.macro_f1.value:15.3f}")
    print(f"{'the worst':26}{scores.worst.released.macro_f1.value:15.3f}\n")
    public = {sentence for name in USUAL_POOLS for sentence in load_pool(name).sentences}
    print(f"sentences of the release that are not public ones: {len(set(released.texts) - public)}")
    promised = made.guarantee
    print(f"promise: epsilon {promised.epsilon:g}, delta {promised.delta:g} for one request, its text and its label")
    print(f"corpus, card, attribution and sketch: {folder}")


if __name__ == "__main__":
    main()
