"""What a card claims and what the ledger charges are one number, whatever is rewritten, randomized and divided."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.card import Card, totals
from tacit.cli.main import run
from tacit.documents.codebook import Codebook
from tacit.engines.charging import Charging
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.users import UserRule
from tacit.errors import BadParameterError
from tacit.guarantee import Unit
from tacit.labels import LabelRule
from tacit.mechanism import Rewritten

from .test_users import Counted

KEY = "a key that is only used in tests"
EPSILON, DELTA = 1.25, 1e-5
USERS = (None, UserRule("who", "divide", 1), UserRule("who", "divide", 3), UserRule("who", "concatenate"))
LABELS = (None, LabelRule(("x", "y"), 0.5, "label"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Nine rows of three users, all texts different."""
    path = tmp_path / "in.csv"
    rows = [(f"u{i // 3}", f"n{i}", "xy"[i % 2], *(f"{column} {i}" for column in "abc")) for i in range(9)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("who", "id", "label", "a", "b", "c"), *rows])
    return path


def make_job(table: Path, **more: object) -> RewriteJob:
    known = {"mechanism": Counted(epsilon=EPSILON, delta=DELTA), "output": str(table.with_name("out.csv"))}
    return RewriteJob(input=str(table), **{**known, **more})  # type: ignore[arg-type]


def allowed(labels: LabelRule | None, users: UserRule | None, named: bool) -> bool:
    """The rows of a user that become one have no one label and no one name."""
    return users is None or users.mode == "divide" or (labels is None and not named)


@pytest.mark.parametrize(
    ("labels", "users", "named"),
    [choice for choice in itertools.product(LABELS, USERS, (False, True)) if allowed(*choice)],
)
@pytest.mark.parametrize("columns", [("a",), ("a", "b"), ("b", "a", "b"), ("a", "b", "c")])
def test_a1_the_card_claims_what_the_ledger_charges(table, columns, users, labels, named):
    users = None if users is None else replace(users)
    with open_ledger(table.with_name("ledger.db"), KEY) as ledger:
        charging = Charging(ledger, "d", "id" if named else None)
        job = make_job(table, columns=columns, users=users, labels=labels, charging=charging)
        facts = rewrite_file(job).facts
        promised = job.promise(facts)
        width = len(set(columns))
        label = 0.0 if labels is None else labels.epsilon
        rows = 1 if users is None else users.rows_of_user
        if users is not None:
            spent = ledger.spent(Subject("user", "u1"))
            assert promised.unit is Unit.USER
        elif labels is not None:
            spent = ledger.spent(Subject("dataset", "d"))
            assert promised.unit is Unit.RECORD
        else:
            spent = ledger.spent(Subject("dataset", "d"))
            assert promised.unit is Unit.DOCUMENT
            assert (promised.epsilon, promised.delta) == (EPSILON, DELTA), "one text"
            promised = promised.for_group(width)
        assert (promised.epsilon, promised.delta) == pytest.approx((spent.epsilon, spent.delta), rel=1e-12)
        assert promised.epsilon == pytest.approx(rows * (width * EPSILON + label), rel=1e-12)
        assert promised.delta == pytest.approx(rows * width * DELTA, rel=1e-12)
        # The data set is charged one row; whoever asks about a document of it is answered by the same numbers.
        row = ledger.spent(Subject("dataset", "d"))
        assert row.epsilon == pytest.approx(width * EPSILON + label, rel=1e-12)
        document = ledger.spent(Subject("document", "d\0n4" if named else facts_text(users)))
        expected = (width if named else 1) * EPSILON + label
        if users is None or rows == 3:
            assert document.epsilon == pytest.approx(expected, rel=1e-12)


def facts_text(users: UserRule | None) -> str:
    return "a 4" if users is None or users.mode == "divide" else "a 3\na 4\na 5"


def test_a1_the_bound_of_a_user_is_the_exact_law_of_all_texts():
    """Randomized response on each of w texts: the largest ratio over all outputs is e**(w * epsilon)."""
    keep = np.exp(EPSILON) / (1 + np.exp(EPSILON))
    for width in (1, 2, 3):
        outputs = list(itertools.product((0, 1), repeat=width))
        law = [
            [np.prod([keep if bit == secret else 1 - keep for bit in output]) for output in outputs]
            for secret in (0, 1)
        ]
        worst = float(np.max(np.log(law[0]) - np.log(law[1])))
        document = Counted(epsilon=EPSILON).guarantee()
        for users in (UserRule("who", "divide", 1), UserRule("who", "concatenate")):
            assert users.promise(document, width).epsilon == pytest.approx(worst)


@pytest.mark.parametrize(("epsilon", "documents", "width"), [(7.0, 25, 1), (0.1, 11, 2), (0.2, 11, 1), (0.7, 5, 7)])
def test_a1_the_shares_of_a_user_are_together_no_more_than_was_given(epsilon, documents, width):
    """7 / 25 * 25 is more than 7 in floating point, and a card that rounds up said 7.00001."""
    users = UserRule("who", "divide", documents)
    assert epsilon / (documents * width) * (documents * width) > epsilon
    promised = users.promise(Counted(epsilon=users.epsilon_of_document(epsilon, width)).guarantee(), width)
    assert promised.epsilon <= epsilon
    assert dict(Card(promised).content().rows)["epsilon"] == f"{epsilon:g} per user"


def test_a1_the_delta_of_one_text_is_not_called_that_of_the_user():
    """A card said "delta 0.0002" and, below it, "delta 0.0001"."""
    text = replace(Counted(epsilon=EPSILON, delta=DELTA).guarantee(), parameters={"delta": DELTA})
    rows = Card(UserRule("who", "divide", 1).promise(text, 2)).content().rows
    assert [row for row in rows if row[0].startswith("delta")] == [("delta", "2e-05"), ("delta of one text", "1e-05")]


def test_a1_a_row_of_several_texts_is_totaled_on_the_card(table):
    job = make_job(table, columns=("a", "b"))
    card = Card(job.promise(), rewrite_file(job).facts)
    lines = [line for line in card.to_dict()["totals"] if "row" in line["what"]]
    assert [(line["what"], line["exponent"]) for line in lines] == [("one row here, 2 texts", 2 * EPSILON)]
    assert f"{2 * DELTA:.3g}" in lines[0]["note"]
    alone = make_job(table, columns=("a",), force=True)
    assert not [what for what, _, _ in totals(alone.promise(), rewrite_file(alone).facts) if "row" in what]


def test_a1_delta_of_a_row_counts_its_columns(table):
    """0.06 lies below 1/9 for one text of a row, and above it for two."""
    chosen = Counted(epsilon=1.0, delta=0.06)
    rewrite_file(make_job(table, mechanism=chosen, columns=("a",)))
    with pytest.raises(BadParameterError, match="too large"):
        rewrite_file(make_job(table, mechanism=chosen, columns=("a", "b"), force=True))


@pytest.mark.parametrize("mode", ["divide", "concatenate"])
def test_a1_the_command_keeps_the_budget_of_a_user_over_all_columns(table, mode, monkeypatch, capsys):
    """`--epsilon` is what a user may spend: texts share it, and card, ledger and terminal say the same."""
    monkeypatch.setenv("TACIT_LEDGER_KEY", KEY)
    monkeypatch.setattr(Codebook, "prepare", lambda self: None)
    monkeypatch.setattr(
        Codebook, "rewrite_texts", lambda self, texts, source: Rewritten(["x"] * len(texts), [1] * len(texts))
    )
    out, ledger_file = table.with_name("out.csv"), table.with_name("ledger.db")
    arguments = ["rewrite", table, "--column", "a", "--column", "b", "--level", "document", "--epsilon", 5]
    arguments += ["--user-column", "who", "--user-mode", mode, "--documents-per-user", 3, "--ledger", ledger_file]
    assert run([str(item) for item in (*arguments, "--dataset", "d", "-o", out)]) == 0
    card = Card.from_json(out.with_name("out.csv.card.json").read_text())
    with open_ledger(ledger_file) as ledger:
        spent = ledger.spent(Subject("user", "u1"))
    assert card.guarantee.unit is Unit.USER
    assert card.guarantee.epsilon == pytest.approx(5.0)
    assert spent.epsilon == pytest.approx(card.guarantee.exponent())
    plan = [*arguments[:8], "--option", "epsilon=5", "--user-column", "who", "--dry-run"]
    assert run([str(item) for item in plan]) == 0, "the same number in another way"
    assert "5 per user" in capsys.readouterr().out


def test_a1_the_command_prints_the_total_of_a_row(table, monkeypatch, capsys):
    monkeypatch.setattr(Codebook, "prepare", lambda self: None)
    monkeypatch.setattr(
        Codebook, "rewrite_texts", lambda self, texts, source: Rewritten(["x"] * len(texts), [1] * len(texts))
    )
    arguments = ["rewrite", table, "--column", "a", "--column", "b", "--level", "document", "--epsilon", 5]
    assert run([str(item) for item in (*arguments, "--dry-run")]) == 0
    assert "one row here, 2 texts" in capsys.readouterr().out
    assert run([str(item) for item in (*arguments, "-o", table.with_name("out.csv"))]) == 0
    assert "For one row here, 2 texts, in 2 columns together: by at most e^10 " in capsys.readouterr().err
