"""Real messages for the other programs here, if the folder of data sets has them: TACIT_DATA, or ../shared/data beside
the project. Otherwise the eight made-up ones of support_mail.csv; the programs say which.

    reviews     what people wrote about side effects of their medicine, with their illness: the UCI "Drug Reviews
                (Druglib.com)", CC BY 4.0; the first short ones of different illnesses
    questions   questions to a bank, with what they are about: BANKING77 (Casanueva et al. 2020, CC BY 4.0); the first
                of each of its 77 kinds

Both give the name of a csv file with the columns `topic` and `message`.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

from shell import HERE

DATA = Path(os.environ.get("TACIT_DATA", HERE.parents[1] / "shared" / "data"))
MADE_UP = HERE / "support_mail.csv"
REVIEWS = 8
REVIEW_CHARACTERS = range(60, 160)

Row = dict[str, str]


def reviews(folder: Path) -> Path:
    """Eight short reviews of medicine, or the made-up messages."""
    source = DATA / "druglib-reviews" / "test.tsv.gz"
    if not source.is_file():
        return made_up()
    short = (row for row in _rows(source) if len(row["side_effects_review"]) in REVIEW_CHARACTERS)
    chosen = list(_first_of_each(short, "condition", "side_effects_review"))[:REVIEWS]
    print(f"real texts: {len(chosen)} reviews of medicine from Druglib.com")
    return _written(folder / "reviews.csv", chosen)


def questions(folder: Path) -> Path:
    """One question to a bank of each kind, or the made-up messages."""
    source = DATA / "banking77" / "test.tsv"
    if not source.is_file():
        return made_up()
    chosen = list(_first_of_each(_rows(source), "intent", "text"))
    print(f"real texts: {len(chosen)} questions to a bank from BANKING77")
    return _written(folder / "questions.csv", chosen)


def made_up() -> Path:
    print(f"made-up messages of {MADE_UP.name}: set TACIT_DATA to the folder of the data sets for real ones")
    return MADE_UP


def read_messages(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as file:
        return [row["message"] for row in csv.DictReader(file)]


def _rows(path: Path) -> Iterator[Row]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    yield from csv.DictReader(content.decode("utf-8").split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)


def _first_of_each(rows: Iterator[Row], topic: str, message: str) -> Iterator[Row]:
    seen: set[str] = set()
    for row in rows:
        if row[topic] not in seen:
            seen.add(row[topic])
            yield {"topic": row[topic], "message": row[message]}


def _written(path: Path, rows: list[Row]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["topic", "message"])
        writer.writeheader()
        writer.writerows(rows)
    return path
