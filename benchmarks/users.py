"""Drawing users or drawing their examples: which needs less noise at equal epsilon for users, and one learning run.

python benchmarks/users.py                # both: a few minutes of one core for the table, half an hour for the runs
python benchmarks/users.py --part table   # or --part learn

The table is computed, not measured. Both ways take as many examples per step and draw at the same rate. The number is
the noise multiplier for drawing examples over that for drawing users: the noise on the mean gradient is less with
examples if users have more rows on average (of those that count) than this number. The most they can have is K.

The runs predict the age group (two, equally large) of 2,000 bloggers from single posts: the head of MiniLM, four posts
of each blogger to learn from ("even"), or one to four ("uneven"), one of each to test on. Every setting that was tried
is shown; nothing is chosen by the scores.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import mean, stdev

import tacit
from corpus import data_rows
from tacit.training.user_plans import UserTerms, compared

EPSILONS = (1.0, 3.0, 8.0)
PASSES = 3.0


def show_table() -> None:
    print(f"noise multiplier for examples / for users, {PASSES:g} passes, delta = users^-1.5")
    for users in (2_000, 100_000):
        for rate in (0.01, 0.1):
            for group in (2, 4, 16, 64):
                line = f"{users:7,} users, rate {rate:4g}, K = {group:2}:"
                for epsilon in EPSILONS:
                    examples = users * group
                    terms = UserTerms(epsilon, users, examples, group, round(rate * examples), PASSES)
                    both = compared(terms)
                    if both.examples is None:
                        line += f"   epsilon {epsilon:g}: {both.refused}"
                        continue
                    ratio = both.examples.multiplier / both.users.multiplier
                    line += f"   epsilon {epsilon:g}: {ratio:5.2f}"
                print(line, flush=True)


def show_learning(seeds: int, epsilon: float) -> None:
    posts = list(data_rows("blog-authorship/posts.tsv.gz"))
    named = [{"text": row["text"], "label": row["age_group"], "author": row["author"]} for row in posts]
    learned = [row for row, post in zip(named, posts, strict=True) if post["split"] == "train"]
    test = [row for row, post in zip(named, posts, strict=True) if post["split"] == "test"]
    seen: dict[str, int] = {}
    uneven = []
    for row in learned:
        seen[row["author"]] = seen.get(row["author"], 0) + 1
        if seen[row["author"]] <= 1 + int(row["author"][1:]) % 4:
            uneven.append(row)
    work = Path(tempfile.mkdtemp())
    print(f"age group of {len(seen):,} bloggers, head of MiniLM, batch 400, 10 passes, epsilon {epsilon:g} for a user")
    for name, rows in (("even", learned), ("uneven", uneven)):
        for way in ("users", "examples", "no noise"):
            scores, noise = [], ""
            for seed in range(seeds):
                result = tacit.train(
                    "classify", rows, output=work / "model", strategy="head", batch=400, epochs=10, physical=64,
                    epsilon=float("inf") if way == "no noise" else epsilon, user_column="author", rows_per_user=4,
                    unit_sampling="examples" if way == "no noise" else way, seed=seed, test=test,
                )  # fmt: skip
                assert result.score is not None
                scores.append(result.score)
                plan = result.plan
                noise = f"noise on the mean {plan.multiplier / plan.batch:.4f} of the bound"
                shutil.rmtree(work / "model")
                shutil.rmtree(work / "model.private", ignore_errors=True)
            spread = stdev(scores) if len(scores) > 1 else 0.0
            print(
                f"  {name:6} ({len(rows):,} posts) {way:9} macro-F1 {mean(scores):.3f} ({spread:.3f}), {noise}",
                flush=True,
            )
    shutil.rmtree(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("both", "table", "learn"), default="both")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=8.0)
    arguments = parser.parse_args()
    if arguments.part in ("both", "table"):
        show_table()
    if arguments.part in ("both", "learn"):
        show_learning(arguments.seeds, arguments.epsilon)


if __name__ == "__main__":
    main()
