"""Batches: fair slices, one reservation per payer, nobody spoiled by another's refusal or error."""

from __future__ import annotations

import gc
from collections import deque
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.ledger import Subject, open_ledger
from tacit.catalog import build
from tacit.mechanism import Rewritten
from tacit.serve import batching
from tacit.serve.batching import Order, Spender, next_slice, take, work
from tacit.serve.budget import Accounts
from tacit.serve.keys import Keys
from tacit.serve.metrics import Metrics
from tacit.serve.pool import Pool, Prepared, checked_options
from tacit.serve.texts import cut


class Free:
    """A budget without limits."""

    def reserve(self, prepared, orders):
        return [None] * len(orders)


class Loud:
    """A mechanism that shouts, and chokes on one word."""

    def __init__(self):
        self.mechanism = SimpleNamespace(name="loud")
        self.calls = []

    def rewrite(self, texts, source):
        self.calls.append(list(texts))
        if "poison" in texts:
            raise RuntimeError("poison")
        return Rewritten([text.upper() for text in texts], [1] * len(texts))


def order_of(*texts, key=None, **more):
    return Order(list(texts), Spender(key), units=[1] * len(texts), **more)


@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=40), min_size=1, max_size=6), st.integers(1, 60))
def test_every_text_of_every_order_is_taken_once_and_in_order(orders, room):
    waiting = deque(order_of(*texts) for texts in orders)
    everything = list(waiting)
    taken = {id(order): [] for order in everything}
    before = batching.BATCH_CHARACTERS, batching.SLICE_CHARACTERS, batching.SLICE_TEXTS
    batching.BATCH_CHARACTERS, batching.SLICE_CHARACTERS, batching.SLICE_TEXTS = room, max(1, room // 3), 7
    try:
        while batch := take(waiting):
            for order, texts in batch:
                taken[id(order)] += texts
                if order.position < len(order.texts):
                    waiting.append(order)
    finally:
        batching.BATCH_CHARACTERS, batching.SLICE_CHARACTERS, batching.SLICE_TEXTS = before
    assert [taken[id(order)] for order in everything] == orders


def test_a_long_order_takes_turns():
    long, short = order_of(*["x" * 1000] * 500), order_of("y")
    first = take(deque([long, short]))
    assert [order for order, _ in first] == [long, short]
    assert len(first[0][1]) < 500


def test_an_order_that_was_given_up_is_not_worked_on():
    gone, waiting = order_of("a"), order_of("b")
    gone.given_up = True
    assert [order for order, _ in take(deque([gone, waiting]))] == [waiting]


def test_a_slice_has_at_least_one_text():
    assert next_slice(["x" * 10**6, "y"], 0) == ["x" * 10**6]


def test_one_call_for_the_whole_batch():
    loud = Loud()
    batch = take(deque([order_of("a", "b"), order_of("c")]))
    assert work(loud, Free(), batch) == [["A", "B"], ["C"]]
    assert loud.calls == [["a", "b", "c"]]


def test_one_text_cannot_spoil_the_batch():
    answers = work(Loud(), Free(), take(deque([order_of("a"), order_of("poison"), order_of("c")])))
    assert answers[0] == ["A"]
    assert answers[2] == ["C"]
    assert answers[1].status == 500
    assert "RuntimeError" in answers[1].message


@given(st.integers(1, 4), st.integers(1, 9))
def test_each_draw_holds_all_texts_once(draws, count):
    texts = [f"{draw}:{number}" for draw in range(draws) for number in range(count)]
    assert cut(texts, count) == [[f"{draw}:{number}" for number in range(count)] for draw in range(draws)]


# With the ledger ----------------------------------------------------------------------------------------------------


@pytest.fixture
def prepared(vectors):
    return Prepared(build("santext", {"epsilon": 1.0, "vectors": vectors}), None)


@pytest.fixture
def accounts(tmp_path):
    keys = Keys(tmp_path)
    for name in ("team", "poor", "rich"):
        keys.add(name, 600)
    ledger_accounts = Accounts(str(tmp_path / "ledger.sqlite"), Metrics(), keys)
    yield ledger_accounts
    ledger_accounts.close()


def paying(key, *texts, dataset=None, user=None, draws=1):
    units = [len(text.split()) for text in texts]
    return Order(list(texts) * draws, Spender(key, dataset, user), draws, units)


def test_a_batch_of_one_payer_is_one_release(prepared, accounts):
    batch = take(deque([paying("team", "w1 w2"), paying("team", "w3", draws=2)]))
    answers = work(prepared, accounts, batch)
    assert [len(result) for result in answers] == [1, 2]
    (record,) = accounts.ledger.releases()
    assert record.state == "committed"
    assert accounts.ledger.spent(Subject("key", "team")).epsilon == pytest.approx(prepared.rate.of(4).epsilon)


def test_who_is_over_budget_is_taken_out_and_the_others_go_on(prepared, accounts):
    epsilon_each = prepared.rate.of(1).epsilon
    accounts.ledger.set_limit("key", epsilon=3.5 * epsilon_each, name="poor")
    orders = [paying("poor", "w1 w2"), paying("rich", "w1 w2 w3"), paying("poor", "w1 w2"), paying("poor", "w1")]
    answers = work(prepared, accounts, take(deque(orders)))
    assert [isinstance(result, Exception) for result in answers] == [False, False, True, False]
    assert answers[2].code == "budget_exceeded"
    assert accounts.ledger.spent(Subject("key", "poor")).epsilon == pytest.approx(3 * epsilon_each)
    assert accounts.ledger.spent(Subject("key", "rich")).epsilon == pytest.approx(3 * epsilon_each)


def test_nothing_is_drawn_for_a_refused_order(prepared, accounts, monkeypatch):
    accounts.ledger.set_limit("key", epsilon=0.0)
    monkeypatch.setattr(Prepared, "rewrite", lambda *given: pytest.fail("noise was drawn"))
    (result,) = work(prepared, accounts, take(deque([paying("team", "w1")])))
    assert result.status == 403


def test_an_order_that_failed_stays_reserved(prepared, accounts, monkeypatch):
    """Noise may have been drawn, so its cost is never taken back."""

    def broken(self, texts, source):
        raise RuntimeError

    monkeypatch.setattr(Prepared, "rewrite", broken)
    work(prepared, accounts, take(deque([paying("team", "w1")])))
    assert [record.state for record in accounts.ledger.releases()] == ["reserved"]
    assert accounts.ledger.spent(Subject("key", "team")).epsilon > 0


def test_a_limit_per_document_counts_texts_across_requests(prepared, accounts):
    epsilon_each = prepared.rate.of(1).epsilon
    accounts.ledger.set_limit("document", epsilon=2.5 * epsilon_each)
    answers = [work(prepared, accounts, take(deque([paying("team", "w1")])))[0] for _ in range(3)]
    assert [isinstance(result, Exception) for result in answers] == [False, False, True]
    assert not isinstance(work(prepared, accounts, take(deque([paying("team", "w2")])))[0], Exception)


def test_a_text_that_is_sent_twice_in_a_request_counts_twice(prepared, accounts):
    work(prepared, accounts, take(deque([paying("team", "w1", "w1", dataset="letters", draws=3)])))
    spent = accounts.ledger.spent(Subject("document", "w1"), dataset="letters")
    assert spent.epsilon == pytest.approx(prepared.rate.of(6).epsilon)
    assert accounts.ledger.spent(Subject("dataset", "letters")).epsilon == pytest.approx(prepared.rate.of(6).epsilon)


def test_a13_spaces_and_case_do_not_make_another_document_or_user(prepared, accounts):
    epsilon_each = prepared.rate.of(1).epsilon
    accounts.ledger.set_limit("document", epsilon=2.5 * epsilon_each)
    answers = [work(prepared, accounts, take(deque([paying("team", text)])))[0] for text in ("w1", "W1 ", "\tw1\0")]
    assert [isinstance(result, Exception) for result in answers] == [False, False, True]
    work(prepared, accounts, take(deque([paying("team", "w2", "w2 ", dataset="letters", user="u17 ")])))
    assert accounts.ledger.spent(Subject("dataset", "letters")).epsilon == pytest.approx(prepared.rate.of(2).epsilon)
    assert accounts.ledger.spent(Subject("user", "u17")).epsilon == pytest.approx(prepared.rate.of(2).epsilon)


def test_a_user_is_charged_for_all_his_texts(prepared, accounts):
    work(prepared, accounts, take(deque([paying("team", "w1", "w2 w3", user="u17")])))
    assert accounts.ledger.spent(Subject("user", "u17")).epsilon == pytest.approx(prepared.rate.of(3).epsilon)


def test_a_ledger_that_cannot_be_used_stops_releases_and_may_come_back(prepared, tmp_path, monkeypatch):
    place = tmp_path / "ledger.sqlite"
    place.write_bytes(b"this is no database, and it has more than a hundred bytes" * 10)
    keys = Keys(tmp_path)
    keys.add("team", 600)
    accounts = Accounts(str(place), Metrics(), keys)
    monkeypatch.setattr(Prepared, "rewrite", lambda *given: pytest.fail("noise was drawn"))
    (result,) = work(prepared, accounts, take(deque([paying("team", "w1")])))
    assert (result.status, result.code) == (503, "ledger")
    monkeypatch.undo()
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    place.unlink()
    assert work(prepared, accounts, take(deque([paying("team", "w1")])))[0] != []
    accounts.close()
    with open_ledger(place) as ledger:
        assert len(ledger.releases()) == 1


# The pool -----------------------------------------------------------------------------------------------------------


def test_equal_requests_share_a_mechanism_and_old_ones_are_forgotten(vectors):
    pool = Pool(2, (("vectors", vectors),))
    options = {"vectors": vectors}
    first = pool.get("santext", 1.0, options)
    assert pool.get("santext", 1.0, options) is first
    assert pool.get("santext", 1.0, options, tokens_apart=True) is not first
    pool.get("santext", 3.0, options)
    assert pool.ready("santext", 1.0, options) is None


def test_options_that_look_alike_are_not_the_same(vectors):
    allowed = (("vectors", vectors),)
    assert checked_options("santext", {"vectors": vectors, "limit": 10}, allowed)["limit"] == 10
    pool = Pool(4, allowed)
    ten = pool.get("santext", 1.0, {"vectors": vectors, "limit": 10})
    assert len(ten.mechanism.vocabulary) == 10
    assert pool.get("santext", 1.0, {"vectors": vectors}) is not ten


def test_a_forgotten_mechanism_is_really_gone(start, request_body):
    """Nothing of the service holds on to a mechanism that the pool has dropped: memory stays bounded."""
    client = start(mechanisms=3)
    before = mechanisms_in_memory()
    for epsilon in range(1, 8):
        for tokens in (False, True):
            assert (
                client.post("/v1/rewrite", json=request_body(epsilon=float(epsilon), tokens=tokens)).status_code == 200
            )
    assert mechanisms_in_memory() - before <= 3 + 2  # and those whose line has not been cleaned up yet


def mechanisms_in_memory():
    gc.collect()
    return sum(type(get_object) is Prepared for get_object in gc.get_objects())
