"""Requests to an assistant, with their intents, for the other programs here.

Real ones, the first 150 different ones of each of 7 intents in the training set of the Snips NLU benchmark (Coucke et
al. 2018, CC0), if the folder of data sets has them: TACIT_DATA, or ../shared/data beside the project. Otherwise made-up
ones of the same kind; the program says which.
"""

from __future__ import annotations

import csv
import os
import sys
from itertools import product
from pathlib import Path
from random import Random

EACH = 150

MADE_UP = {
    "PlayMusic": ("play {0} by {1}", "put on {0} from {1}", "i want to hear {0} by {1}"),
    "AddToPlaylist": ("add {0} to my {2} playlist", "put {1} on the list {2}", "include {0} by {1} in {2}"),
    "RateBook": ("give {3} {4} stars", "rate the book {3} {4} points", "{3} deserves a rating of {4}"),
    "BookRestaurant": (
        "book a table for {4} in {5}",
        "reserve a restaurant in {5} for {4} people",
        "a place to eat {5}",
    ),
    "GetWeather": ("will it rain in {5} {6}", "what is the weather in {5} {6}", "forecast for {5} {6}"),
    "SearchCreativeWork": ("find the show {3}", "look for the game {3}", "where can i see the film {3}"),
    "SearchScreeningEvent": ("when is {3} shown in {5}", "movie times for {3} {6}", "which cinema shows {3} {6}"),
}
WORDS = (
    ("a song", "the new album", "some jazz", "that old tune", "the last track"),
    ("duke ellington", "nina simone", "the beatles", "bach", "an unknown singer"),
    ("evening", "workout", "road trip", "sunday morning", "quiet hours"),
    ("the long winter", "a house of glass", "north of everything", "seven letters", "the last gardener", "open water",
     "the clockmaker", "children of salt", "a year without mail", "the second moon"),
    ("two", "three", "four", "five", "six"),
    ("boston", "new york", "texas", "paris", "a small town", "lisbon", "the north", "my street"),
    ("tomorrow", "tonight", "next week", "on friday", "at noon"),
)  # fmt: skip
POLITE = ("", "please ", "can you tell me: ", "hello, ", "i need this: ")


def requests() -> list[dict[str, str]]:
    """Rows with `intent` and `text`, in an order that mixes the intents."""
    file = Path(os.environ.get("TACIT_DATA", Path(__file__).parents[2] / "shared" / "data")) / "snips" / "train.tsv"
    rows = _snips(file) if file.is_file() else _made_up()
    print(
        "real requests of Snips" if file.is_file() else "made-up requests: set TACIT_DATA for real ones",
        file=sys.stderr,
    )
    return rows


def write_requests(path: Path, rows: list[dict[str, str]] | None = None) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["intent", "text"])
        writer.writeheader()
        writer.writerows(requests() if rows is None else rows)
    return path


def _snips(path: Path) -> list[dict[str, str]]:
    chosen: dict[tuple[str, str], None] = {}
    counts: dict[str, int] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            found = (row["intent"], row["tokens"])
            if found not in chosen and counts.get(found[0], 0) < EACH:
                chosen[found] = None
                counts[found[0]] = counts.get(found[0], 0) + 1
    return [{"intent": intent, "text": text} for intent, text in chosen]


def _made_up() -> list[dict[str, str]]:
    random, rows = Random(0), []
    for intent, patterns in MADE_UP.items():
        texts = sorted({polite + one for one in _filled(patterns) for polite in POLITE})
        rows += [{"intent": intent, "text": text} for text in random.sample(texts, min(EACH, len(texts)))]
    random.shuffle(rows)
    return rows


def _filled(patterns: tuple[str, ...]) -> set[str]:
    return {pattern.format(*words) for pattern in patterns for words in product(*WORDS)}


if __name__ == "__main__":
    print(f"written: {write_requests(Path(sys.argv[1] if len(sys.argv) > 1 else 'requests.csv'))}")
