"""Audit: is a promise true, and what does a release give away?

    python examples/03_audit.py [FOLDER]

1. checks SanText exactly, over all pairs of 2,000 words;
2. checks a broken mechanism that passes unknown words through, which must be refuted (exit code 3);
3. rewrites requests at two epsilons and attacks the results.
"""

from __future__ import annotations

from assistant_requests import requests, write_requests
from shell import tacit, workplace

ROWS = 200

BROKEN = '''
"""Replaces words of its list and lets all others through: a mistake that published code has made."""
import random

WORDS = ["yes", "no", "maybe", "never", "often"]


def rewrite(text):
    return " ".join(random.choice(WORDS) if word in WORDS else word for word in text.split())
'''


def main() -> None:
    folder = workplace("audit")
    tacit("audit mechanism santext --epsilon 2 --option limit=2000")

    print("\nA mechanism that somebody else wrote:")
    (folder / "broken.py").write_text(BROKEN, encoding="utf-8")
    (folder / "words.txt").write_text("yes\nno\nmaybe\n", encoding="utf-8")
    tacit(
        f"audit mechanism --callable {folder}/broken.py:rewrite --words {folder}/words.txt --epsilon 5 --samples 2000",
        expected=3,
    )

    original = write_requests(folder / "requests.csv", requests()[:ROWS])
    for epsilon in (2, 6):
        private = folder / f"private-{epsilon}.csv"
        tacit(
            f"rewrite {original} --column text --mechanism santext --option limit=5000 --epsilon {epsilon} "
            f"-o {private} --force --quiet"
        )
        tacit(f"audit text {original} {private} --column text --attacks inversion,linkage --encoder none")


if __name__ == "__main__":
    main()
