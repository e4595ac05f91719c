"""The facts that have to be looked up to decide whether a release would break a limit."""

from __future__ import annotations

from tacit.account.ledger.books import EVERYBODY, Books, standings
from tacit.account.ledger.charges import DATASET, NOTHING, PLAIN, PRESENCE, USER, Charge, Charges, rate_of
from tacit.account.ledger.limits import BudgetExceededError, Limit, Rules, Standing, check
from tacit.guarantee import Guarantee


def check_limits(books: Books, guarantee: Guarantee, charges: Charges, dataset: str, job: str | None) -> None:
    """Raise `BudgetExceededError` if anybody would spend more than allowed. Called inside the write transaction."""
    limits = books.limits()
    kinds = {kind for kind, _ in charges}
    for kind in sorted({limit.kind for limit in limits} - {DATASET}):
        for scope in ("", dataset):
            rules = Rules(limits, kind, scope)
            if rules and kind in kinds:
                _check_named(books, kind, rules, guarantee, charges, dataset)
            if rules and EVERYBODY.get(kind) in kinds:
                _check_everybody(books, kind, rules, guarantee, charges, dataset)
    own = [limit for limit in limits if limit.kind == DATASET and limit.dataset in ("", dataset)]
    if own:
        narrowest = max(own, key=lambda limit: limit.dataset)
        _check_dataset(books, narrowest, guarantee, charges, dataset, job)


def _check_named(books: Books, kind: str, rules: Rules, guarantee: Guarantee, charges: Charges, dataset: str) -> None:
    """Subjects that the release names."""
    new: dict[bytes, Charge] = {}
    for (charged, measure), rows in charges.items():
        if charged != kind:
            continue
        for name, (_, charge) in rows.items():
            limit = rules.limit_of(name)
            if limit is not None:
                _must_be_plain(measure, guarantee, limit)
                new[name] = charge
    if new:
        everybody = standings(balance._replace(subject=b"") for balance in books.about_everybody(kind))
        check(rules, dataset, new, standings(books.balances(list(new))), everybody.get(b"", Standing()))


def _check_everybody(
    books: Books, kind: str, rules: Rules, guarantee: Guarantee, charges: Charges, dataset: str
) -> None:
    """A release about a whole data set: every subject that is known to be in it, and one of whom nothing is known."""
    limit = rules.general or next(iter(rules.named.values()))
    for (charged, measure), rows in charges.items():
        if charged != EVERYBODY[kind]:
            continue
        if kind == USER and measure != PLAIN and rate_of(guarantee).measure == PLAIN:
            raise BudgetExceededError(
                "limit-cannot-be-kept",
                "the limit of {limit} cannot be kept: this release protects one {unit}, and nobody knows how many "
                "of them a user has in the data; train for users, or remove the limit",
                limit=str(limit),
                unit=guarantee.unit.value,
                kind=kind,
                of_others=False,
            )
        _must_be_plain(measure, guarantee, limit)
        ((_, charge),) = rows.values()
        known = books.everyone_in(kind, dataset)
        everybody = standings(balance._replace(subject=b"") for balance in books.about_everybody(kind))
        new = {b"": charge, **dict.fromkeys(known, charge)}
        check(rules, dataset, new, known, everybody.get(b"", Standing()))


def _check_dataset(
    books: Books, limit: Limit, guarantee: Guarantee, charges: Charges, dataset: str, job: str | None
) -> None:
    own = books.key.name(DATASET, dataset)
    spent, jobs, apart = {PLAIN: NOTHING, PRESENCE: NOTHING}, {PLAIN: 0, PRESENCE: 0}, ""
    for balance in books.balances([own]):
        if balance.kind != DATASET:
            continue
        if balance.measure in spent:
            spent[balance.measure], jobs[balance.measure] = balance.charge, balance.releases
        elif balance.releases:
            apart = balance.measure
    new = {PLAIN: NOTHING, PRESENCE: NOTHING}
    for (kind, measure), rows in charges.items():
        if kind == DATASET:
            _must_be_plain(measure, guarantee, limit)
            ((_, charge),) = rows.values()
            before, known = (NOTHING, False) if job is None else books.job_so_far(job, dataset, measure)
            new[measure] = before.at_least(charge).minus(before)
            jobs[measure] += 0 if known else 1
    # If all releases hide whether a record is there, they may be added up for that, which costs less.
    measure = PRESENCE if jobs[PRESENCE] == jobs[PLAIN] else PLAIN
    rules = Rules([limit._replace(dataset=dataset)], DATASET, dataset)
    standing = Standing({dataset: spent[measure]}, {dataset: apart} if apart else {})
    check(rules, dataset, {own: new[measure]}, {own: standing}, Standing())


def _must_be_plain(measure: str, guarantee: Guarantee, limit: Limit) -> None:
    if measure not in (PLAIN, PRESENCE):
        raise BudgetExceededError(
            "limit-cannot-be-kept",
            "the limit of {limit} cannot be kept: this release has no plain epsilon, because {reason}",
            limit=str(limit),
            reason=rate_of(guarantee).reason,
            kind=limit.kind,
            of_others=False,
        )
