"""When banded noise beats DP-SGD at equal epsilon: what is left of it in the sums of steps, and one learning run.

python benchmarks/banded.py                  # the table alone: about 5 minutes of one core
python benchmarks/banded.py --learn          # the head of MiniLM on 10,000 phrases of SST-2 instead: about 10 minutes

The table is computed, not measured: root mean square of the noise on the running sums of all steps, banded over
independent, both with the noise of the same epsilon and delta = records^-1.5. Below 1 banded noise is better. The
learning run shows every setting that was tried, each with the same seeds for both kinds of noise; nothing is chosen by
the scores.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from itertools import islice
from pathlib import Path
from statistics import mean, stdev

import tacit
from corpus import data_rows
from tacit.account.matrix import Toeplitz
from tacit.training.banded import BandedPlan, left_over
from tacit.training.plan import TrainingPlan

RECORDS = (10_000, 67_349)
BATCHES = (128, 512, 2_048)
EPOCHS = (1.0, 3.0, 10.0, 30.0)
EPSILONS = (1.0, 3.0, 8.0)
ROWS = 10_000
SETTINGS = [("sgd", 0.05), ("sgd", 0.2), ("adamw", 0.001), ("adamw", 0.005)]


def show_table() -> None:
    print("what is left of the noise, banded / independent (bands)")
    for records in RECORDS:
        for batch in BATCHES:
            for epochs in EPOCHS:
                line = f"{records:7,} records, batch {batch:5,}, {epochs:3g} passes:"
                for epsilon in EPSILONS:
                    share = {"epsilon": epsilon, "records": records, "batch": batch, "epochs": epochs}
                    usual = TrainingPlan.calibrated(**share)  # type: ignore[arg-type]
                    banded = BandedPlan.banded(**share)  # type: ignore[arg-type]
                    left = banded.multiplier * left_over(banded.factor, banded.steps)
                    ratio = left / (usual.multiplier * left_over(Toeplitz(), usual.steps))
                    line += f"   epsilon {epsilon:g}: {ratio:.2f} ({banded.bands})"
                print(line, flush=True)


def show_learning(seeds: int) -> None:
    rows = [{"text": row["sentence"], "label": row["label"]} for row in islice(data_rows("sst2/train.tsv.gz"), ROWS)]
    test = [{"text": row["sentence"], "label": row["label"]} for row in data_rows("sst2/dev.tsv")]
    work = Path(tempfile.mkdtemp())
    print(
        f"head of MiniLM, {ROWS:,} phrases of SST-2, batch 128, 3 passes, epsilon 1: macro-F1 on {len(test)} dev rows"
    )
    for optimizer, rate in SETTINGS:
        for noise in ("independent", "banded"):
            scores = []
            for seed in range(seeds):
                result = tacit.train(
                    "classify", rows, output=work / "model", epsilon=1.0, strategy="head", batch=128, epochs=3,
                    optimizer=optimizer, learning_rate=rate, noise=noise, seed=seed, test=test, physical=128,
                )  # fmt: skip
                assert result.score is not None
                scores.append(result.score)
                shutil.rmtree(work / "model")
            print(f"  {optimizer:6} rate {rate:<6g} {noise:12} {mean(scores):.3f} ({stdev(scores):.3f})", flush=True)
    shutil.rmtree(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learn", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.learn:
        show_learning(arguments.seeds)
    else:
        show_table()


if __name__ == "__main__":
    main()
