"""Rewrite: what people wrote about their medicine, word by word and as whole texts.

    python examples/01_rewrite.py [FOLDER]

Rewrites real reviews (made-up support mail where there are none, see real_messages.py) with SanText+ (readable; rare
words hide) and, in Python, with SanText; shows the card and what the guarantee adds up to. The codebook (whole
documents) runs where its libraries are installed.
"""

from __future__ import annotations

from real_messages import read_messages, reviews
from shell import tacit, workplace

import tacit as library
from tacit.errors import MissingExtraError


def main() -> None:
    folder = workplace("rewrite")
    source, private = reviews(folder), folder / "private.csv"
    tacit(
        f"rewrite {source} --column message --keep topic --mechanism santext+ --epsilon 4 -o {private} --force --quiet"
    )
    print(private.read_text(encoding="utf-8"))
    print((folder / "private.csv.card.md").read_text(encoding="utf-8"))

    print("The same in Python, with SanText: every word is protected alike")
    messages = read_messages(source)
    for epsilon in (1.0, 3.0, 6.0):
        release = library.SanText(epsilon=epsilon).rewrite(messages)
        longest = release.for_documents()
        print(f"  epsilon {epsilon:g}: {release.texts[0]}")
        print(f"    the longest text adds up to e^{longest.exponent(longest.metric.typical):,.0f} at typical distances")

    print("Whole texts, with the codebook: any two texts hide each other")
    try:
        release = library.build("codebook", {"epsilon": 5}).rewrite(messages[:3])
    except MissingExtraError as error:
        print(f"  left out: {error}")
        return
    for text in release.texts:
        print(f"  {text}")
    print(f"  each text: e^{release.guarantee.exponent():g}")


if __name__ == "__main__":
    main()
