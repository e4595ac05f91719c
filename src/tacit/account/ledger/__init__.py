"""The ledger of spent budget.

charges    what one release costs each of its subjects, in numbers that may be added
limits     what nobody may spend more than
ledger     reserve, commit, cancel; what was spent
opening    where a ledger is, and whether it may be made
custody    database, key and anchor together
verify     whether anything was changed afterwards
keys       the key that hides names and seals the chain; rotation: another one in its place
anchor     the newest event, kept beside the key: whether the end is missing
copying    a whole ledger in another place
schema     the tables; database, postgres: SQLite or PostgreSQL behind the same few calls
"""

from tacit.account.ledger.amounts import Account, ReleaseRecord, Spent
from tacit.account.ledger.charges import Subject
from tacit.account.ledger.custody import KeyChangedError, RolledBackError
from tacit.account.ledger.database import LedgerError, MissingLedgerError
from tacit.account.ledger.ledger import Ledger, MissingLimitError, Reservation, TokenUsedError
from tacit.account.ledger.limits import BudgetExceededError, Limit
from tacit.account.ledger.opening import open_ledger
from tacit.account.ledger.verify import Verification

__all__ = [
    "Account",  # a sum that may be added
    "BudgetExceededError",  # a release would break a limit
    "KeyChangedError",  # open the ledger again
    "Ledger",
    "LedgerError",  # missing, locked, damaged, wrong key
    "Limit",
    "MissingLedgerError",  # it is not there, and may not be made
    "MissingLimitError",  # a limit that must be there is not
    "ReleaseRecord",  # one line
    "Reservation",  # budget set aside
    "RolledBackError",  # events are missing that were there
    "Spent",  # what a subject has spent
    "Subject",  # whose budget is spent
    "TokenUsedError",  # for another release
    "Verification",
    "open_ledger",
]
