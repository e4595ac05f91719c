"""Train: a classifier of requests whose weights hide every single record.

    python examples/02_train.py [FOLDER]

Trains a linear layer on the frozen sentence encoder MiniLM (epsilon 8, half a minute on one core), scores it on
requests it has not seen, and predicts. The test rows are treated as public.
"""

from __future__ import annotations

import json

from assistant_requests import requests, write_requests
from shell import tacit, workplace

TEST_SHARE = 5
"""Every fifth row is kept for testing."""


def main() -> None:
    folder = workplace("train")
    rows = requests()
    parts = {"train": [], "test": []}
    for number, row in enumerate(rows):
        parts["test" if number % TEST_SHARE == 0 else "train"].append(row)
    for name, part in parts.items():
        write_requests(folder / f"{name}.csv", part)

    tacit(
        f"train classify {folder}/train.csv --label-column intent --epsilon 8 --strategy head --epochs 10 --batch 128 "
        f"--length 24 --labels {','.join(sorted({row['intent'] for row in rows}))} -o {folder}/model --quiet"
    )
    card = json.loads((folder / "model" / "card.json").read_text(encoding="utf-8"))
    print(card["sentence"])
    tacit(f"predict {folder}/model {folder}/test.csv --score")
    tacit(f"predict {folder}/model {folder}/test.csv -o {folder}/predicted.csv")


if __name__ == "__main__":
    main()
