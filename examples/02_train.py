"""Train: a classifier of requests whose weights hide every single record.

    python examples/02_train.py [FOLDER]

Trains a linear layer on the frozen sentence encoder MiniLM (epsilon 8, half a minute on one core), scores it on
requests it has not seen, and predicts. The test rows are treated as public.
"""

from __future__ import annotations

from assistant_requests import requests
from shell import workplace

import tacit

TEST_SHARE = 5
"""Every fifth row is kept for testing."""


def main() -> None:
    folder = workplace("train")
    rows = requests()
    test = rows[::TEST_SHARE]
    train = [row for number, row in enumerate(rows) if number % TEST_SHARE]

    trained = tacit.train(
        "classify",
        train,
        label_column="intent",
        labels=sorted({row["intent"] for row in rows}),
        epsilon=8,
        strategy="head",
        epochs=10,
        batch=128,
        length=24,
        output=folder / "model",
    )
    print(trained.card)

    scored = tacit.predict(trained.folder, test, score=True)
    print(f"macro-F1 on {len(scored)} requests that it has not seen: {scored.score:.3f}")
    for row, intent in list(zip(test, scored.predictions, strict=True))[:5]:
        print(f"{intent:<22}{row['text']}")
    tacit.predict(trained.folder, test, output=folder / "predicted.csv")
    print(f"all predictions: {folder / 'predicted.csv'}")


if __name__ == "__main__":
    main()
