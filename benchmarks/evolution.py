"""What evolution and names of labels add to a corpus by matching: ways of making it side by side, from one sketch.

    python benchmarks/evolution.py [--sets bank,travel] [--ways plain,frames,written] [--seeds 1]

    plain      public sentences alone
    frames     words replaced and frames filled in (`--evolve 1`)
    written    a language model writes (`--evolve 1 --writer smollm2`)

each as it is and with subjects: a tenth of the rows begin with the public name of their label (the default of
`tacit synthesize`).

Printed: macro-F1 of learners trained on the rows and tested on at most 1,500 original rows. `words` is logistic
regression on single words, stopped after 40 steps, `static` the same on vectors of the static encoder: faster than
those of benchmarks/matching.py, so compare only numbers of this program. All ways of a seed draw from the same sketch.

Sets: `bank` and `travel` are 30 intents each of CLINC150, `trec` and `r8` those of benchmarks/discriminant.py; settings
were chosen on these. The names of benchmarks/matching.py are sets that were only measured. What is finished stands in
the folder of `--record`: sketches, what a model wrote, scores. The same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import tacit
from corpus import cache_folder
from discriminant import SETS as CHOSEN_ON
from discriminant import Rows, clinc, part
from matching import SETS as MEASURED
from matching import read
from tacit.encoders import load_encoder
from tacit.jobs.fields import USUAL_POOLS
from tacit.jobs.synthesize import load_writer
from tacit.matching.artifact import read_sketch
from tacit.matching.composing import joined
from tacit.matching.corpus import matched_corpus
from tacit.matching.evolution.rounds import Evolution, evolved_pool
from tacit.matching.pool import load_pool
from tacit.matching.sketch import Sketch
from tacit.matching.subjects import USUAL_SHARE

MOST_TEST_ROWS, STEPS = 1_500, 40
BANK = (
    "freeze_account routing pin_change bill_due pay_bill account_blocked interest_rate min_payment bill_balance "
    "transfer order_checks balance spending_history transactions report_fraud replacement_card_duration "
    "expiration_date damaged_card improve_credit_score report_lost_card card_declined credit_limit_change apr "
    "redeem_rewards credit_limit rewards_balance application_status credit_score new_card international_fees"
)
TRAVEL = (
    "plug_type travel_notification translate flight_status international_visa timezone exchange_rate "
    "travel_suggestion travel_alert vaccines lost_luggage book_flight book_hotel carry_on car_rental "
    "current_location oil_change_when oil_change_how uber traffic tire_pressure schedule_maintenance gas mpg "
    "distance directions last_maintenance gas_type tire_change jump_start"
)
WAYS = ("plain", "subjects", "frames", "frames and subjects", "written", "written and subjects")


def rows_of(name: str) -> tuple[Rows, Rows]:
    """The training and the test rows of a set."""
    if name in ("bank", "travel"):
        wanted = set((BANK if name == "bank" else TRAVEL).split())
        train, test = (
            ([text for text, label in zip(*rows, strict=True) if label in wanted],
             [label for label in rows[1] if label in wanted])
            for rows in clinc()
        )  # fmt: skip
        return train, test
    if name in MEASURED:
        return read(name, 0), read(name, 1)
    rows = CHOSEN_ON[name]()
    if rows is None:
        raise SystemExit(f"{name}: its package is not installed (benchmarks/discriminant.py names it)")
    return rows


def scores(rows: Rows, test: Rows) -> dict[str, float]:
    """Macro-F1 of the fast learners."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    def score(train: object, tested: object) -> float:
        guesses = LogisticRegression(C=10, max_iter=STEPS).fit(train, rows[1]).predict(tested)
        return float(f1_score(test[1], guesses, average="macro", zero_division=0))

    words = TfidfVectorizer(sublinear_tf=True, min_df=2)
    static = load_encoder("static")
    return {
        "words": score(words.fit_transform(rows[0]), words.transform(test[0])),
        "static": score(static.encode(rows[0]), static.encode(test[0])),
    }


def sketch_of(train: Rows, epsilon: float, path: Path) -> Sketch:
    """The sketch of a seed, built once."""
    if not path.exists():
        rows = [{"text": text, "label": label} for text, label in zip(*train, strict=True)]
        labels, delta = sorted(set(train[1])), len(rows) ** -1.5
        tacit.sketch(rows, label_column="label", labels=labels, epsilon=epsilon, delta=delta, output=path)
    return read_sketch(path)


def ways_of(way: str) -> str:
    """What was made to get a way, with subjects or without."""
    return "plain" if way == "subjects" else way.partition(" ")[0]


def corpora(sketch: Sketch, made: str, seed: int, record: Path) -> dict[str, Rows]:
    """The rows of a way with and without subjects, which are the same sentences."""
    pools = [load_pool(name) for name in USUAL_POOLS]
    if made != "plain":
        writer = load_writer("smollm2") if made == "written" else None
        evolved = evolved_pool(sketch, pools, Evolution(1, seed, writer, record, made))
        pools += [] if evolved is None else [evolved]
    corpus = matched_corpus(sketch, pools, seed=seed, subject_lines=USUAL_SHARE)
    labels = list(corpus.labels)
    named = "subjects" if made == "plain" else f"{made} and subjects"
    return {made: ([joined(each) for each in corpus.sentences], labels), named: (list(corpus.texts), labels)}


def main() -> None:
    """Print a line for every set, seed and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="bank,travel")
    parser.add_argument("--ways", default="plain,written", help="of plain, frames, written")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--private-rows", type=int, help="use only so many private rows")
    parser.add_argument("--record", type=Path, default=cache_folder() / "evolution")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.record.mkdir(parents=True, exist_ok=True)
    results = options.record / "scores.jsonl"
    known = {tuple(line["key"]): line for line in map(json.loads, results.open())} if results.exists() else {}
    print(f"{'data':12}{'seed':>5}  {'way':22}{'rows':>8}{'words':>8}{'static':>8}{'CPU s':>8}")
    for name in options.sets.split(","):
        train, test = rows_of(name)
        train = train if options.private_rows is None else part(train, options.private_rows, 1)
        test = part(test, MOST_TEST_ROWS, 5)
        for seed in range(options.seeds):
            stem = f"{name}-{len(train[0])}-{options.epsilon:g}-{seed}"
            for made in options.ways.split(","):
                keys = [(name, len(train[0]), options.epsilon, seed, way) for way in WAYS if ways_of(way) == made]
                if not known.keys() >= set(keys):
                    start = time.process_time()
                    sketch = sketch_of(train, options.epsilon, options.record / f"{stem}.tacit")
                    rows = corpora(sketch, made, seed, options.record)
                    seconds = time.process_time() - start
                    for key in keys:
                        texts, labels = rows[key[-1]]
                        line = {"key": key, "rows": len(texts), "CPU": seconds, **scores((texts, labels), test)}
                        known[key] = line
                        with results.open("a") as file:
                            file.write(json.dumps(line) + "\n")
                for key in keys:
                    line = known[key]
                    print(
                        f"{name:12}{seed:5}  {key[-1]:22}{line['rows']:8,}{line['words']:8.3f}{line['static']:8.3f}"
                        f"{line['CPU']:8.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
