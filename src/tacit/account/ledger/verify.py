"""Whether a ledger is still what it was: every event is sealed together with the one before.

    seal(n) = HMAC-SHA256(key, seal(n - 1) || [n, event, facts of the event])

The facts of a reservation include a hash of its line and of all its charges. So whoever changes, removes, inserts or
reorders a line without the key is found out. Two things a chain cannot show by itself:

- whoever has the key can write a new chain;
- lines that are cut off *together with* all events after them leave a shorter ledger that fits. An anchor (the number
  of events and the last seal) shows that: the one beside the key (`anchor`), or one that was kept elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from tacit.account.ledger.charges import Charge, Charges, digest_of
from tacit.account.ledger.database import Database, Row
from tacit.account.ledger.keys import LedgerKey
from tacit.errors import BadParameterError

KEY_CHANGED = "key changed"
OLDER_ACCEPTED = "older copy accepted"
RELEASE_COLUMNS = (
    "r.id, r.token, r.job, r.dataset, r.unit, r.guarantee, r.command, r.version, r.created, r.state, r.subjects, "
    "r.content"
)
STATE_EVENTS = ("reserved", "committed", "canceled")
ROUNDING = 1e-9
MOST_SHOWN = 20


@dataclass(frozen=True)
class Verification:
    """The result of a verification; no problem means that every line is as it was written."""

    problems: tuple[str, ...]
    events: int
    releases: int
    anchor: str
    compared_with_anchor: bool
    notes: tuple[str, ...] = ()
    """What the chain itself tells that a reader should know: older copies that were accepted, changes of the key."""

    @property
    def ok(self) -> bool:
        return not self.problems


def canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def event_seal(key: LedgerKey, before: bytes, position: int, event: str, body: str) -> bytes:
    return key.seal(before + canonical([position, event, body]))


def release_digest(row: Row, guarantee_digest: str) -> bytes:
    """A hash of a line of `releases` as it was reserved; its state has events of its own."""
    id, token, job, dataset, unit, _, command, version, created, _, subjects, content = row
    facts = [id, token, job, dataset, unit, guarantee_digest, command, version, created, subjects, bytes(content).hex()]
    return hashlib.sha256(canonical(facts)).digest()


@dataclass
class _Story:
    """The content of the chain: the hash and state of each release, and the limits."""

    releases: dict[int, str]
    states: dict[int, str]
    limits: dict[tuple[str, str, str], tuple[float, float]]
    seals: dict[int, str]
    notes: list[str] = field(default_factory=list)
    events: int = 0
    last: bytes = b""


def verify(database: Database, key: LedgerKey, anchor: str | None) -> Verification:
    """Read everything once; the running sums are compared inside the database."""
    wanted = None if anchor is None else _anchor(anchor)
    story = _Story({}, {}, {}, {})
    problems = list(_read_chain(database, key, story, None if wanted is None else wanted[0]))
    if wanted is not None:
        problems += _compare_anchor(wanted, story)
    problems += _compare_releases(database, story)
    problems += _compare_limits(database, story)
    problems += _compare_balances(database)
    if len(problems) > MOST_SHOWN:
        problems = [*problems[:MOST_SHOWN], f"and {len(problems) - MOST_SHOWN:,} more"]
    head = f"{story.events}:{story.last.hex()}"
    notes = tuple(story.notes)
    return Verification(tuple(problems), story.events, len(story.releases), head, wanted is not None, notes)


def _read_chain(database: Database, key: LedgerKey, story: _Story, anchored: int | None) -> Iterator[str]:
    for position, event, body, sealed in database.stream(
        "SELECT position, event, body, seal FROM chain ORDER BY position"
    ):
        story.events += 1
        if position != story.events:
            yield f"event {story.events} is missing, or the order was changed"
            story.events = position
        if not hmac.compare_digest(event_seal(key, story.last, position, event, body), bytes(sealed)):
            yield f"event {position} ({event}) was changed, or the one before it"
        story.last = bytes(sealed)
        if position == anchored:
            story.seals[position] = story.last.hex()
        _follow(story, event, body)


def _follow(story: _Story, event: str, body: str) -> None:
    try:
        facts = json.loads(body)
        if event == "reserve":
            story.releases[facts[0]], story.states[facts[0]] = facts[1], "reserved"
        elif event in STATE_EVENTS:
            story.states[facts[0]] = event
        elif event == "limit":
            kind, name, dataset, epsilon, delta, _ = facts
            story.limits[kind, name, dataset] = (epsilon, delta)
        elif event == "limit removed":
            story.limits.pop((facts[0], facts[1], facts[2]), None)
        elif event == KEY_CHANGED:
            story.notes.append(f"the key was changed on {facts[3][:10]}, after event {facts[1]:,}")
        elif event == OLDER_ACCEPTED:
            lost = "events" if facts[1] is None else f"{facts[1]:,} events"
            story.notes.append(
                f"an older copy was accepted on {facts[3][:10]}: {lost} of before are not in this ledger"
            )
    except (ValueError, TypeError, IndexError, KeyError):
        return  # its seal does not fit either, so it has been told already


def _anchor(text: str) -> tuple[int, str]:
    count, colon, seal = text.strip().partition(":")
    if not colon or not count.isdigit() or (seal and len(seal) != 64):
        raise BadParameterError(
            "bad-anchor", "an anchor is NUMBER:HASH, as 'tacit ledger verify' and 'tacit ledger export' print it"
        )
    return int(count), seal.lower()


def _compare_anchor(wanted: tuple[int, str], story: _Story) -> Iterator[str]:
    count, seal = wanted
    if count > story.events:
        yield f"the anchor knows {count:,} events, and only {story.events:,} are left: the newest lines were cut off"
    elif count and story.seals.get(count) != seal:
        yield f"event {count} is not the one that the anchor knows: the ledger was written anew"


def _compare_releases(database: Database, story: _Story) -> Iterator[str]:
    charges = charges_by_release(database)
    charge = next(charges, None)
    missing = set(story.releases)
    rows = database.rows(
        f"SELECT {RELEASE_COLUMNS}, g.digest, g.body FROM releases r JOIN guarantees g ON g.id = r.guarantee "
        "ORDER BY r.id"
    )
    for row in rows:
        release, digest, body = row[0], row[12], row[13]
        while charge is not None and charge[0] < release:
            yield f"there are charges of a release {charge[0]} that is not there"
            charge = next(charges, None)
        own: Charges = {}
        places: set[str] = set()
        if charge is not None and charge[0] == release:
            (_, own, places), charge = charge, next(charges, None)
        if release not in story.releases:
            yield f"release {release} was added without the key"
            continue
        missing.discard(release)
        content = hashlib.sha256(canonical([row[3], digest, row[2]]) + digest_of(own)).digest()
        if hashlib.sha256(body.encode()).hexdigest() != digest:
            yield f"the guarantee of release {release} was changed"
        if release_digest(row[:12], digest).hex() != story.releases[release]:
            yield f"release {release} was changed"
        if content != bytes(row[11]):
            yield f"the charges of release {release} were changed"
        elif places - {row[3]}:
            yield f"charges of release {release} were moved to another data set"
        if row[9] != story.states.get(release):
            yield f"release {release} is said to be {row[9]}, and its last event says {story.states.get(release)}"
    for release in sorted(missing):
        yield f"release {release} was removed"


def charges_by_release(database: Database) -> Iterator[tuple[int, Charges, set[str]]]:
    """The charges of each release, and the data sets of the accounts they lie in."""
    current: int | None = None
    charges: Charges = {}
    places: set[str] = set()
    for release, kind, dataset, measure, subject, units, *charge in database.stream(
        "SELECT c.release, a.kind, a.dataset, a.measure, c.subject, c.units, c.epsilon, c.added, c.delta "
        "FROM charges c JOIN accounts a ON a.id = c.account ORDER BY c.release"
    ):
        if release != current:
            if current is not None:
                yield current, charges, places
            current, charges, places = release, {}, set()
        charges.setdefault((kind, measure), {})[bytes(subject)] = (units, Charge(*charge))
        places.add(dataset)
    if current is not None:
        yield current, charges, places


def _compare_limits(database: Database, story: _Story) -> Iterator[str]:
    rows = database.rows("SELECT kind, name, dataset, epsilon, delta FROM limits")
    if {row[:3]: row[3:] for row in rows} != story.limits:
        yield "the limits were changed without the key"


# Every charge counts here, those of canceled releases as zero: so each running sum that the program ever made has its
# line, and one without was put in by somebody else. `*_size` is what rounding can be measured against; the running sum
# itself cannot, because it is what is in doubt.
_SUMS = """
    SELECT c.subject AS subject, c.account AS account,
           SUM(CASE WHEN r.state <> 'canceled' THEN c.epsilon ELSE 0 END) AS epsilon, SUM(c.epsilon) AS epsilon_size,
           SUM(CASE WHEN r.state <> 'canceled' THEN c.added ELSE 0 END) AS added, SUM(c.added) AS added_size,
           SUM(CASE WHEN r.state <> 'canceled' THEN c.delta ELSE 0 END) AS delta, SUM(c.delta) AS delta_size,
           SUM(CASE WHEN r.state <> 'canceled' THEN 1 ELSE 0 END) AS releases
    FROM charges c JOIN releases r ON r.id = c.release JOIN accounts a ON a.id = c.account
    WHERE a.kind <> 'dataset' OR r.job IS NULL GROUP BY c.subject, c.account
"""
_JOBS = """
    SELECT c.subject AS subject, c.account AS account, r.job AS job,
           MAX(CASE WHEN r.state <> 'canceled' THEN c.epsilon ELSE 0 END) AS epsilon, SUM(c.epsilon) AS epsilon_size,
           MAX(CASE WHEN r.state <> 'canceled' THEN c.added ELSE 0 END) AS added, SUM(c.added) AS added_size,
           MAX(CASE WHEN r.state <> 'canceled' THEN c.delta ELSE 0 END) AS delta, SUM(c.delta) AS delta_size,
           MAX(CASE WHEN r.state <> 'canceled' THEN 1 ELSE 0 END) AS releases
    FROM charges c JOIN releases r ON r.id = c.release JOIN accounts a ON a.id = c.account
    WHERE a.kind = 'dataset' AND r.job IS NOT NULL GROUP BY c.subject, c.account, r.job
"""
_COLUMNS = ("epsilon", "epsilon_size", "added", "added_size", "delta", "delta_size", "releases")
_ADDED_UP = ", ".join(f"SUM({name}) AS {name}" for name in _COLUMNS)
_EXPECTED = f"""
    SELECT subject, account, {_ADDED_UP}
    FROM ({_SUMS} UNION ALL
          SELECT subject, account, {_ADDED_UP} FROM ({_JOBS}) jobs GROUP BY subject, account) parts
    GROUP BY subject, account
"""
_FLOORS = {"epsilon": 1e-9, "added": 1e-9, "delta": 1e-15}
_APART = " OR ".join(
    f"ABS(e.{name} - b.{name}) > {ROUNDING} * e.{name}_size + {floor}" for name, floor in _FLOORS.items()
)


def _compare_balances(database: Database) -> Iterator[str]:
    """The running sums against the charges they are sums of."""
    wrong = database.first_row(
        f"SELECT COUNT(*) FROM ({_EXPECTED}) e LEFT JOIN balances b ON b.subject = e.subject AND b.account = e.account "
        f"WHERE b.subject IS NULL OR b.releases <> e.releases OR {_APART}"
    )
    without = database.first_row(
        f"SELECT COUNT(*) FROM balances b LEFT JOIN accounts a ON a.id = b.account LEFT JOIN ({_EXPECTED}) e "
        "ON e.subject = b.subject AND e.account = b.account "
        "WHERE (a.kind IS NULL OR a.kind <> 'job') AND e.subject IS NULL"
    )
    count = (wrong[0] if wrong else 0) + (without[0] if without else 0) + _wrong_jobs(database)
    if count:
        yield f"{count:,} running sums are not the sums of their charges"


def _wrong_jobs(database: Database) -> int:
    """The number of jobs that do not hold the largest charge of their releases: one that is too large makes the rest of
    the job free for its data set."""
    expected = {
        (job, dataset, measure): row
        for job, dataset, measure, *row in database.rows(
            f"SELECT j.job, a.dataset, a.measure, {', '.join(f'j.{name}' for name in _COLUMNS)} "
            f"FROM ({_JOBS}) j JOIN accounts a ON a.id = j.account"
        )
    }
    wrong = 0
    for subject, dataset, measure, epsilon, added, delta, releases in database.stream(
        "SELECT b.subject, a.dataset, a.measure, b.epsilon, b.added, b.delta, b.releases "
        "FROM balances b JOIN accounts a ON a.id = b.account WHERE a.kind = 'job'"
    ):
        row = expected.pop((bytes(subject).hex(), dataset, measure), None)
        if row is None:
            wrong += 1
            continue
        *numbers, count = row
        pairs = zip((epsilon, added, delta), numbers[::2], numbers[1::2], _FLOORS.values(), strict=True)
        close = all(abs(recorded - right) <= ROUNDING * size + floor for recorded, right, size, floor in pairs)
        wrong += not (close and releases == count)
    return wrong + len(expected)
