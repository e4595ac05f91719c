"""The ledger of spent budget.

charges    what one release costs each of its subjects, in numbers that may be added
limits     what nobody may spend more than
ledger     reserve, commit, cancel; what was spent
verify     whether anything was changed afterwards
keys       the key that hides names and seals the chain
schema     the tables; database: SQLite or PostgreSQL behind the same few calls
"""

from tacit.account.ledger.charges import Subject
from tacit.account.ledger.database import LedgerError
from tacit.account.ledger.ledger import (
    Account,
    Ledger,
    ReleaseRecord,
    Reservation,
    Spent,
    TokenUsedError,
    open_ledger,
)
from tacit.account.ledger.limits import BudgetExceededError, Limit
from tacit.account.ledger.verify import Verification

__all__ = [
    "Account",  # a sum that may be added
    "BudgetExceededError",  # a release would break a limit
    "Ledger",
    "LedgerError",  # missing, locked, damaged, wrong key
    "Limit",
    "ReleaseRecord",  # one line
    "Reservation",  # budget set aside
    "Spent",  # what a subject has spent
    "Subject",  # whose budget is spent
    "TokenUsedError",  # for another release
    "Verification",
    "open_ledger",
]
