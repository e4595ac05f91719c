"""Private phrases of users: how many are released, how much of what many write, beside one set union over all lengths.

    python benchmarks/ngrams.py

Blogs (a part of the Blog Authorship Corpus): all posts of an author are one secret. For each epsilon: phrases of each
length, the share of those used by at least 100 authors that are released ("covered"), made-up ones among the released
(no author wrote them), CPU seconds; and the same for one histogram over phrases of all lengths with a threshold, at the
same budget, whose authors share their weight over phrases of all lengths.
"""

from __future__ import annotations

import gzip
import time
from collections import Counter, defaultdict

import numpy as np

from corpus import data_folder
from tacit.account.delta import automatic_delta
from tacit.noise.source import Source
from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.ngrams import STEPS, Phrase, UnitRuns, bounded_counts, phrase_terms, released_phrases
from tacit.training.vocabulary.word_noise import calibrate

LONGEST, MOST, MANY = 5, 300, 100


def authors() -> UnitRuns:
    units = UnitRuns()
    with gzip.open(data_folder() / "blog-authorship" / "posts.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            units.add(cells[0], cells[-1])
    return units


def phrases_of(unit: list[list[str]]) -> set[Phrase]:
    return {
        tuple(run[place : place + length])
        for run in unit
        for length in range(1, LONGEST + 1)
        for place in range(len(run) - length + 1)
    }


def shown(name: str, released: set[Phrase], used: Counter[Phrase], epsilon: float, seconds: float) -> None:
    by_length: dict[int, int] = defaultdict(int)
    for phrase in released:
        by_length[len(phrase)] += 1
    many = {phrase for phrase, count in used.items() if count >= MANY}
    covered = {
        length: len([p for p in many & released if len(p) == length])
        / max(1, len([p for p in many if len(p) == length]))
        for length in range(1, LONGEST + 1)
    }
    cells = "  ".join(f"{by_length[length]:6,} ({covered[length]:4.0%})" for length in range(1, LONGEST + 1))
    made_up = sum(phrase not in used for phrase in released)
    print(f"{name:10} {epsilon:4}  {cells}  made up {made_up:4}  {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    everybody = authors()
    used_by: Counter[Phrase] = Counter()
    for runs in everybody:
        used_by.update(phrases_of(runs))
    print(f"{len(everybody):,} authors; of each length: released (share of those that {MANY} authors use)")
    delta = automatic_delta(len(everybody))
    for budget in (1.0, 3.0, 8.0):
        start = time.process_time()
        terms = phrase_terms(epsilon=budget, delta=delta, longest=LONGEST, most_phrases=MOST)
        made = set(released_phrases(everybody, terms, Source.from_test_seed(0)))
        shown("levels", made, used_by, budget, time.process_time() - start)
        start = time.process_time()
        noise = calibrate(epsilon=budget, delta=delta, contribution=Contribution(MOST))
        counts = bounded_counts((sorted(phrases_of(runs)) for runs in everybody), Contribution(MOST))
        listed = list(counts)
        exact = np.array([counts[phrase] for phrase in listed]) / STEPS
        names, _ = noise.released([" ".join(phrase) for phrase in listed], exact, Source.from_test_seed(0))
        shown("union", {tuple(name.split(" ")) for name in names}, used_by, budget, time.process_time() - start)
