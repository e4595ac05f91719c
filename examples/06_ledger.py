"""The ledger: what was spent on each text adds up, and a release that would break a limit is refused.

    python examples/06_ledger.py [FOLDER]

No question of a bank's customers (no made-up message where there are no real ones, see real_messages.py) may spend more
than 1,100 in all. That sounds like a lot; but a word costs up to epsilon times the largest distance of two words, and a
message is the sum of its words. The first release fits, the second does not and is refused before any noise is drawn
(exit code 2).
"""

from __future__ import annotations

import os
import secrets

from real_messages import questions
from shell import tacit, workplace


def main() -> None:
    folder = workplace("ledger")
    ledger = folder / "budget.db"
    rewrite = f"rewrite {questions(folder)} --column message --mechanism santext --epsilon 1 --dataset support --quiet"
    # A key for this demonstration only. Without the variable Tacit makes a key file in your configuration folder.
    os.environ.setdefault("TACIT_LEDGER_KEY", secrets.token_hex(32))
    tacit(f"ledger limit {ledger} document --epsilon 1100")
    tacit(f"{rewrite} --ledger {ledger} -o {folder}/first.csv")
    tacit(f"ledger show {ledger}")
    tacit(f"{rewrite} --ledger {ledger} -o {folder}/second.csv", expected=2)
    tacit(f"ledger verify {ledger}")


if __name__ == "__main__":
    main()
