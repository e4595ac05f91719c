"""Evaluate: what releases at several epsilons are still good for.

    python examples/04_evaluate.py [FOLDER]

Rewrites requests at three epsilons and measures how much wording survives and how well a classifier that was trained on
them knows the intents of original requests, between floor and ceiling. The page tradeoff.html shows it in pictures.
"""

from __future__ import annotations

from assistant_requests import write_requests
from shell import tacit, workplace

EPSILONS = (1, 3, 6)


def main() -> None:
    folder = workplace("evaluate")
    original, files = write_requests(folder / "requests.csv"), []
    for epsilon in EPSILONS:
        files.append(f"{folder}/private-{epsilon}.csv")
        tacit(
            f"rewrite {original} --column text --keep intent --mechanism santext --epsilon {epsilon} "
            f"-o {files[-1]} --force --quiet"
        )
    tacit(
        f"evaluate {original} {' '.join(files)} --column text --label-column intent --learner tfidf "
        f"--metrics bleu,kept-words --html {folder}/tradeoff.html --force"
    )


if __name__ == "__main__":
    main()
