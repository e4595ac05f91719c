"""The ledger: what was spent on each text adds up, and a release that would break a limit is refused.

    python examples/06_ledger.py [FOLDER]

No message of examples/support_mail.csv may spend more than 1,000 in all. That sounds like a lot; but a word costs up to
epsilon times the largest distance of two words, and a message is the sum of its words. The first release fits, the
second does not and is refused before any noise is drawn (exit code 2).
"""

from __future__ import annotations

import os
import secrets

from shell import HERE, tacit, workplace

REWRITE = f"rewrite {HERE}/support_mail.csv --column message --mechanism santext --epsilon 1 --dataset support --quiet"


def main() -> None:
    folder = workplace("ledger")
    ledger = folder / "budget.db"
    # A key for this demonstration only. Without the variable Tacit makes a key file in your configuration folder.
    os.environ.setdefault("TACIT_LEDGER_KEY", secrets.token_hex(32))
    tacit(f"ledger limit {ledger} document --epsilon 1000")
    tacit(f"{REWRITE} --ledger {ledger} -o {folder}/first.csv")
    tacit(f"ledger show {ledger}")
    tacit(f"{REWRITE} --ledger {ledger} -o {folder}/second.csv", expected=2)
    tacit(f"ledger verify {ledger}")


if __name__ == "__main__":
    main()
