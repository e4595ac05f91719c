"""Users, local training, correlated noise, plans and whole runs of the federated simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.account.matrix import Buffered, Toeplitz, square_root  # noqa: E402
from tacit.account.tree import Tree  # noqa: E402
from tacit.card import Card  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.guarantee import Adjacency, Notion, Unit  # noqa: E402
from tacit.noise import gaussian_epsilon  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.clipping import FlatClipping, make_clipping  # noqa: E402
from tacit.training.correlated_noise import noise_stream  # noqa: E402
from tacit.training.federated import FederatedRun, LocalTraining, Users, VisitPlan, group_by_user  # noqa: E402
from tacit.training.federated.integers import LEAST_VARIANCE, SkellamPlan  # noqa: E402
from tacit.training.federated.local import local_update  # noqa: E402
from tacit.training.federated.round import FederatedRound  # noqa: E402
from tacit.training.gradients import UnsupportedModelError  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import TrainingSettings  # noqa: E402
from tacit.training.tasks import Classification  # noqa: E402
from tests.training.test_run import MUCH_NOISE, rows, tiny, tokenizer  # noqa: E402, F401

FACTORS = [
    Toeplitz(),
    square_root(4),
    square_root(13),
    Buffered((0.4, 0.2), (0.3, 0.95)),
    Tree(),
    Tree(efficient=False),
    Tree(restart=4),
    Tree(restart=5, efficient=False),
]


# Noise ---------------------------------------------------------------------------------------------------------------


def dense(factor, rounds, stream):
    """The noise on the running sums by the whole matrix: B z."""
    if isinstance(factor, Tree):
        span = factor.span(rounds)
        ends = [(tree * span + ((number + 1) << level) - 1, level) for tree, level, number in factor.nodes(rounds)]
        z = np.stack([stream.normal(end, b"/%d" % level) for end, level in ends])
    else:
        z = np.stack([stream.normal(step) for step in range(rounds)])
    return factor.decoder(rounds) @ z


@pytest.mark.parametrize("factor", FACTORS, ids=lambda f: f.label)
@pytest.mark.parametrize("rounds", [1, 13, 16])
def test_the_streamed_noise_is_the_noise_of_the_whole_matrix(factor, rounds):
    stream = noise_stream(factor, rounds, 5, StreamKey.from_test_seed(3), b"x")
    kept = []
    streamed = []
    for step in range(rounds):
        streamed.append(stream.at(step))
        kept.append(stream.vectors)
    np.testing.assert_allclose(np.cumsum(streamed, axis=0), dense(factor, rounds, stream), atol=2e-5)
    most = {Toeplitz: lambda: factor.bands - 1, Buffered: lambda: len(factor.decays), Tree: lambda: 5}[type(factor)]()
    assert max(kept) <= most, "memory must not grow with the rounds"


@pytest.mark.parametrize("factor", FACTORS, ids=lambda f: f.label)
def test_a_round_has_the_same_noise_whenever_it_is_asked_for(factor):
    key = StreamKey.from_test_seed(3)
    first = noise_stream(factor, 16, 5, key, b"x")
    inorder = [first.at(step) for step in range(16)]
    again = noise_stream(factor, 16, 5, key, b"x")
    np.testing.assert_array_equal(again.at(11), inorder[11])
    np.testing.assert_array_equal(again.at(4), inorder[4])
    np.testing.assert_array_equal(again.at(5), inorder[5])
    assert not np.allclose(noise_stream(factor, 16, 5, StreamKey.from_test_seed(4), b"x").at(0), inorder[0])
    assert not np.allclose(noise_stream(factor, 16, 5, key, b"y").at(0), inorder[0])


@pytest.mark.parametrize("factor", FACTORS, ids=lambda f: f.label)
def test_running_sums_have_the_claimed_variance(factor):
    """16 variances of 40,000 normals within 5 standard errors: false-alarm rate below 1e-5 for each factor."""
    size, rounds = 40_000, 16
    stream = noise_stream(factor, rounds, size, StreamKey.from_test_seed(8), b"x")
    sums = np.cumsum([stream.at(step).astype(np.float64) for step in range(rounds)], axis=0)
    claimed = factor.variances(rounds)
    assert (np.abs((sums**2).mean(axis=1) / claimed - 1) < 5 * math.sqrt(2 / size)).all()


# Users and local training --------------------------------------------------------------------------------------------


def test_rows_are_gathered_by_user():
    assert len(group_by_user(["Ren\u00e9", "Rene\u0301", "bob"])) == 2
    users = group_by_user(["ann", "bob", " ann ", "eve", "bob", "ann"])
    assert users.rows == ((0, 2, 5), (1, 4), (3,))
    assert (len(users), users.longest, users.with_more_than(1)) == (3, 3, 2)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "", "b"], "row 2 has no value in 'author'"),
        (["a", "  "], "row 2"),
        (["a", "a"], "same value"),
        ([], "no rows"),
    ],
)
def test_users_that_cannot_be_told_apart_are_refused(names, message):
    with pytest.raises(BadInputError, match=message):
        group_by_user(names, "author")


class Linear(torch.nn.Module):
    def __init__(self, noisy=False):
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(3))
        self.register_buffer("seen", torch.zeros(1))
        self.drop = torch.nn.Dropout(0.5 if noisy else 0.0)

    def forward(self, x):
        self.seen += 1
        return self.drop(x) @ self.weight


X = torch.arange(60.0).view(20, 3).sin()
Y = torch.arange(20.0).cos()


def linear_loss(model, batch):
    return (model(batch["x"]) - batch["y"]).square()


def linear_batch(ids):
    return {"x": X[list(ids)], "y": Y[list(ids)]}


def update_of(model, mine, local, seed=0, step=0):
    source = StreamKey.from_test_seed(seed).stream(step, b"user")
    return local_update(model, dict(model.named_parameters()), linear_loss, linear_batch, mine, local, source)


def test_one_local_step_is_the_gradient_and_the_weights_come_back():
    model = Linear()
    before = model.weight.detach().clone()
    update, loss = update_of(model, [1, 4, 5], LocalTraining(epochs=1, batch=16, rate=0.3))
    residual = X[[1, 4, 5]] @ before - Y[[1, 4, 5]]
    gradient = 2 * (residual[:, None] * X[[1, 4, 5]]).mean(0)
    torch.testing.assert_close(update["weight"], -0.3 * gradient)
    assert loss == pytest.approx(float(residual.square().mean()), rel=1e-5)
    assert torch.equal(model.weight, before)
    assert float(model.seen) == 0, "what a model counts must not wander from user to user"


def test_several_local_steps_descend_and_only_so_many_rows_count():
    model = Linear()
    _, first = update_of(model, list(range(20)), LocalTraining(epochs=1, batch=4, rate=0.05))
    update, _ = update_of(model, list(range(20)), LocalTraining(epochs=10, batch=4, rate=0.05))
    moved = Linear()
    moved.weight.data += update["weight"]
    assert float(linear_loss(moved, linear_batch(range(20))).detach().mean()) < first / 2
    seen = []

    def watched(ids):
        seen.extend(ids)
        return linear_batch(ids)

    source = StreamKey.from_test_seed(0).stream(0, b"user")
    local = LocalTraining(epochs=2, batch=4, rate=0.05, rows=6)
    local_update(model, dict(model.named_parameters()), linear_loss, watched, list(range(20)), local, source)
    assert len(seen) == 12
    assert len(set(seen)) == 6


def test_an_update_does_not_depend_on_who_came_before():
    model = Linear(noisy=True).train()
    local = LocalTraining(epochs=2, batch=2)
    alone, _ = update_of(model, [0, 1, 2], local, seed=1)
    update_of(model, [3, 4], local, seed=2)
    after, _ = update_of(model, [0, 1, 2], local, seed=1)
    assert torch.equal(alone["weight"], after["weight"])
    other, _ = update_of(model, [0, 1, 2], local, seed=1, step=1)
    assert not torch.equal(alone["weight"], other["weight"]), "each round draws anew"


# Rounds --------------------------------------------------------------------------------------------------------------


def make_round(plan, users, clipping="flat", bound=0.05, **local):
    return FederatedRound(
        plan, linear_batch, model=Linear(), loss=linear_loss, users=users, local=LocalTraining(**local),
        clipping=make_clipping(clipping, bound, 1) if plan.private else None,
    )  # fmt: skip


def pairs(count):
    return Users(tuple((2 * i, 2 * i + 1) for i in range(count)))


@pytest.mark.parametrize("clipping", ["flat", "automatic", "damped", "per-layer", "quantile"])
@pytest.mark.parametrize("kind", ["fedavg", "ftrl"])
def test_one_user_moves_the_sum_by_at_most_the_bound(kind, clipping):
    """The same key, with and without the last user: the noise cancels, what is left is the user."""
    key = StreamKey.from_test_seed(6)
    if kind == "fedavg":
        plan = TrainingPlan(10, 10, 1, 1.0, 1e-2, unit=Unit.USER)
    else:
        plan = VisitPlan(10, 9, 4, 1.0, 1e-2, factorization=square_root(3))
    everybody = make_round(plan, pairs(10), clipping, rate=5.0)
    without = make_round(replace(plan, records=9, batch=9), pairs(9), clipping, rate=5.0)
    without.plan = replace(without.plan, **({} if kind == "fedavg" else {"records": 10}))
    if kind == "ftrl":
        with_last = [step for step in range(plan.separation) if 9 in plan.sample(step, key)]
        assert len(with_last) == 1
        step = with_last[0]
        without.users = Users((*pairs(9).rows, (18, 19)))
        without.plan = SimpleNamespace(
            sample=lambda s, k: plan.sample(s, k)[:-1], batch=plan.batch, private=True, multiplier=plan.multiplier,
            steps=plan.steps, factorization=plan.factorization,
        )  # fmt: skip
        without.streams = {}
        without._stream = everybody._stream
    else:
        step = 0
    everybody.run(step, key)
    without.run(step, key)
    a = everybody.model.weight.grad * everybody.plan.batch
    b = without.model.weight.grad * without.plan.batch
    assert 0.01 < float((a - b).norm()) <= 0.05 * (1 + 1e-5)


def test_the_noise_of_a_round_is_sigma_times_the_bound():
    """3,000 normals: variance within 5 standard errors, false-alarm rate 6e-7."""
    plan = VisitPlan(10, 2, 1000, 2.0, 1e-2)
    server = make_round(plan, pairs(10), bound=0.5)
    server.users = Users(((0,),) * 10)
    nobody = replace(plan, records=10)
    object.__setattr__(nobody, "sample", lambda step, key: np.array([], dtype=np.int64))
    server.plan = nobody
    key = StreamKey.from_test_seed(2)
    noise = []
    for step in range(1000):
        facts = server.run(step, key)
        noise.append(server.model.weight.grad * plan.batch)
        assert facts.examples == 0
    variance = float(torch.stack(noise).square().mean())
    assert variance == pytest.approx((2.0 * 0.5) ** 2, rel=5 * math.sqrt(2 / 3000))


def test_an_update_that_is_not_finite_counts_as_none():
    plan = TrainingPlan(3, 3, 1, 1e-6, 1e-2, unit=Unit.USER)
    said = []
    server = make_round(plan, Users(((0, 1), (2, 3), (4, 5))))
    server.warn = said.append
    server.collate = lambda ids: {"x": X[list(ids)] * (math.inf if 2 in ids else 1.0), "y": Y[list(ids)]}
    facts = server.run(0, StreamKey.from_test_seed(0))
    assert torch.isfinite(server.model.weight.grad).all()
    assert float(server.model.weight.grad.norm()) * 3 <= 2 * 0.05 * (1 + 1e-3)
    assert math.isfinite(facts.loss)
    assert len(said) == 1


def test_without_privacy_a_round_is_the_mean_update():
    plan = TrainingPlan.without_privacy(records=4, batch=4, epochs=1)
    server = make_round(plan, pairs(4), rate=0.3)
    server.run(0, StreamKey.from_test_seed(0))
    each = [update_of(Linear(), list(mine), LocalTraining(rate=0.3))[0]["weight"] for mine in pairs(4).rows]
    torch.testing.assert_close(server.model.weight.grad, -torch.stack(each).mean(0))


@pytest.mark.parametrize("kind", ["fedavg", "ftrl"])
def test_an_adaptive_bound_finds_the_quantile(kind):
    """500 users whose updates have lengths around 1 find the median from 30 times too large; fixed seed."""
    generator = np.random.default_rng(0)
    lengths = generator.lognormal(0.0, 0.3, 500)
    if kind == "fedavg":
        plan = TrainingPlan(500, 250, 60, 1.0, 1e-4, unit=Unit.USER)
    else:
        plan = VisitPlan(500, 250, 60, 4.0, 1e-4, factorization=square_root(4))
    server = make_round(plan, Users(((0,),) * 500), "quantile", bound=30.0)
    server._add = lambda user, step, key, sums: (0.0, float(lengths[user] > server.clipping.bound))
    for step in range(60):
        server.run(step, StreamKey.from_test_seed(1))
    assert server.clipping.bound == pytest.approx(1.0, rel=0.25)


# Plans ---------------------------------------------------------------------------------------------------------------


def test_every_user_is_visited_once_in_an_epoch_and_equally_far_apart():
    plan = VisitPlan(1000, 100, 30, 1.0, 1e-4)
    key = StreamKey.from_test_seed(0)
    rounds = [plan.sample(step, key) for step in range(30)]
    assert (plan.separation, plan.visits) == (10, 3)
    for start in (0, 10, 20):
        assert sorted(np.concatenate(rounds[start : start + 10]).tolist()) == list(range(1000))
    for step in range(20):
        np.testing.assert_array_equal(rounds[step], rounds[step + 10])
    # Groups of 100 users on average; within 6 standard deviations, false-alarm rate below 1e-7.
    assert all(abs(len(visited) - 100) < 6 * math.sqrt(90) for visited in rounds)
    fewer = replace(plan, records=999)
    assert all(set(fewer.sample(s, key)) == set(plan.sample(s, key)) - {999} for s in range(10)), (
        "the groups of the others must not depend on a user"
    )


@pytest.mark.parametrize("noise", ["buffered", "banded", "tree", "independent"])
def test_a_plan_spends_what_it_says(noise):
    plan = VisitPlan.ordered(epsilon=2.0, users=2000, cohort=100, epochs=3, noise=noise)
    assert (plan.steps, plan.separation, plan.visits) == (60, 20, 3)
    assert 1.999 < plan.epsilon() <= 2.0
    spent = [plan.epsilon(step) for step in range(0, 61, 5)]
    assert spent[0] == 0.0
    assert all(a <= b + 1e-12 for a, b in pairwise(spent))
    assert all(plan.epsilon(step) <= plan.epsilon_at_most(step) + 1e-12 for step in range(1, 61))
    replaced = VisitPlan.ordered(
        epsilon=2.0, users=2000, cohort=100, epochs=3, noise=noise, adjacency=Adjacency.REPLACE_ONE
    )
    assert replaced.multiplier == pytest.approx(2 * plan.multiplier)


def test_independent_noise_and_one_visit_is_one_gaussian_mechanism():
    plan = VisitPlan(1000, 100, 10, 1.3, 1e-4)
    assert plan.epsilon() == pytest.approx(gaussian_epsilon(1.3, 1e-4, 1.0))
    assert replace(plan, steps=40).epsilon() == pytest.approx(gaussian_epsilon(1.3, 1e-4, 2.0)), "four visits"


def test_correlated_noise_needs_less_of_it_in_the_end():
    """At equal epsilon the noise on the final model, the sum of all rounds, is what counts."""
    final = {}
    for noise in ("independent", "tree", "banded", "buffered"):
        plan = VisitPlan.ordered(epsilon=2.0, users=2000, cohort=20, epochs=1, noise=noise, bands=32)
        final[noise] = plan.multiplier * math.sqrt(plan.factorization.variances(plan.steps).mean())
    assert final["buffered"] < final["tree"] < final["independent"]
    assert final["banded"] < final["tree"]


def test_the_promise_of_a_plan_is_made_to_users():
    plan = VisitPlan.ordered(epsilon=2.0, users=2000, cohort=100, epochs=3)
    made = plan.guarantee(steps=60, secure=True, what="DP-FTRL", parameters={}, trials=2)
    assert (made.unit, made.adjacency, made.notion) == (Unit.USER, Adjacency.ADD_REMOVE, Notion.APPROXIMATE)
    assert made.epsilon == pytest.approx(2 * plan.epsilon())
    assert "no amplification" in str(made)
    assert not plan.guarantee(steps=60, secure=False, what="x", parameters={}).is_private


def test_impossible_plans_are_refused():
    with pytest.raises(BadParameterError, match="nothing can be learned"):
        VisitPlan.ordered(epsilon=1e-4, users=1000, cohort=1000, epochs=100)
    with pytest.raises(BadParameterError, match="does not fit"):
        VisitPlan.ordered(epsilon=1.0, users=10, cohort=20, epochs=1)
    with pytest.raises(BadParameterError, match="no noise 'pink'"):
        VisitPlan.ordered(epsilon=1.0, users=100, cohort=20, epochs=1, noise="pink")
    for wrong in ({"epochs": 0}, {"batch": 0}, {"rows": 0}, {"rate": 0.0}):
        with pytest.raises(BadParameterError):
            LocalTraining(**wrong)


# Whole runs ----------------------------------------------------------------------------------------------------------

USERS = 100


class Bag(torch.nn.Module):
    """The mean over the words of a score for each label: learns in a moment what the whole runs are tested with."""

    def __init__(self, words, dropout=0.0):
        super().__init__()
        self.scores = torch.nn.Embedding(words, 2)
        torch.nn.init.zeros_(self.scores.weight)
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, input_ids, attention_mask, **others):
        mask = attention_mask[:, :, None]
        return SimpleNamespace(logits=(self.drop(self.scores(input_ids)) * mask).sum(1) / mask.sum(1))


def make_run(tokenizer, folder, plan, *, model=None, **changes):  # noqa: F811
    task = Classification(length=16)
    data = rows(USERS * 4)
    task.learn(data)
    users = group_by_user([f"user {i % USERS}" for i in range(len(data))])
    base = {
        "learning_rate": 0.3,
        "model": "tiny",
        "checkpoint_every": 3,
        "optimizer": "adam",
        "clipping": "automatic",
        "bound": 1.0,
    }
    settings = TrainingSettings(**{**base, **changes.pop("settings", {})})
    local = changes.pop("local", LocalTraining(rate=0.5))
    chosen = tiny(tokenizer, task) if model == "bert" else Bag(len(tokenizer), 0.2)
    return FederatedRun(task, chosen, tokenizer, data, plan, settings, folder, users=users, local=local, **changes)


def accuracy(run):
    fresh = rows(200, seed=9)
    encoded = [run.task.encode(row, run.tokenizer, train=False) for row in fresh]
    run.model.eval()
    predictions = run.task.predict(run.model, run.task.collate(encoded, run.tokenizer), run.tokenizer, fresh)
    return np.mean([a == row["label"] for a, row in zip(predictions, fresh, strict=True)])


def plan_named(kind, multiplier, steps=20, cohort=25):
    if kind == "fedavg":
        return TrainingPlan(USERS, cohort, steps, multiplier, 1e-3, unit=Unit.USER)
    return VisitPlan(USERS, cohort, steps, multiplier, 1e-3, factorization=kind)


def test_a_run_in_whole_numbers_learns_and_says_what_is_simulated(tokenizer, tmp_path):  # noqa: F811
    plan = SkellamPlan(USERS, 25, 20, 1.0, 1e-3)
    run = make_run(tokenizer, tmp_path / "model", plan)
    guarantee = run.run()
    assert accuracy(run) > 0.9
    assert guarantee.epsilon == plan.epsilon()
    assert "simulated" in " ".join(guarantee.assumptions)
    assert run.round.code.variance(plan.multiplier) >= LEAST_VARIANCE


def test_votes_on_a_bound_are_refused_in_whole_numbers(tokenizer, tmp_path):  # noqa: F811
    """They would be a second release that the plan does not account for."""
    plan = SkellamPlan(USERS, 25, 2, 1.0, 1e-3)
    run = make_run(tokenizer, tmp_path / "model", plan, settings={"clipping": "quantile"})
    with pytest.raises(BadParameterError) as raised:
        run.run()
    assert raised.value.code == "clipping-not-in-whole-numbers"


@pytest.mark.parametrize("kind", ["fedavg", square_root(4)], ids=["fedavg", "ftrl"])
def test_a_run_learns_what_many_users_share(tokenizer, tmp_path, kind):  # noqa: F811
    run = make_run(tokenizer, tmp_path / "model", plan_named(kind, 0.7 if kind == "fedavg" else 1.0))
    seen = []
    guarantee = run.run(seen.append)
    assert accuracy(run) > 0.9
    assert guarantee.unit is Unit.USER
    assert guarantee.epsilon == run.plan.epsilon()
    assert [p.step for p in seen] == list(range(1, 21))
    assert seen[-1].facts.loss < seen[0].facts.loss
    assert [p.epsilon for p in seen] == sorted(p.epsilon for p in seen)
    assert seen[-1].epsilon == pytest.approx(guarantee.epsilon, abs=0.01)


def test_the_folder_is_a_model_with_a_card(tokenizer, tmp_path):  # noqa: F811
    run = make_run(tokenizer, tmp_path / "model", plan_named(Tree(), 2.0, 2, cohort=5), model="bert")
    guarantee = run.run()
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    assert loaded.config.id2label == {0: "neg", 1: "pos"}
    card = Card.from_json((tmp_path / "model" / "card.json").read_text())
    assert card.guarantee.epsilon == guarantee.epsilon
    text = card.to_text()
    assert "at most 128 rows" in text
    assert "number of users is public" in text
    assert "number of records" not in text
    assert not (tmp_path / "model.private" / "checkpoint.pt").exists(), "the key of the noise must be gone"


@pytest.mark.parametrize("kind", ["fedavg", square_root(4)], ids=["fedavg", "ftrl"])
def test_noise_of_an_epsilon_near_zero_leaves_nothing_to_learn(tokenizer, tmp_path, kind):  # noqa: F811
    """Flipping the noise flips the guesses, so the accuracy is one half on average. By Hoeffding's inequality the mean
    of 20 runs is off by 0.35 with probability 1.5 % at most; the seeds are fixed."""
    scores = []
    for seed in range(20):
        plan = plan_named(kind, 400.0, 3, cohort=5)
        run = make_run(tokenizer, tmp_path / str(seed), plan, seed=seed, settings={"optimizer": "sgd"})
        run.run()
        scores.append(accuracy(run))
    assert plan.epsilon() < 0.1
    assert abs(np.mean(scores) - 0.5) < 0.35


@pytest.mark.parametrize(
    ("kind", "clipping"),
    [("fedavg", "quantile"), (Buffered((0.4, 0.2), (0.3, 0.9)), "quantile"), (Tree(restart=4), "flat")],
    ids=["fedavg", "buffered", "tree"],
)
def test_a_run_that_is_stopped_and_resumed_is_the_same_run(tokenizer, tmp_path, kind, clipping):  # noqa: F811
    class HaltedError(Exception):
        pass

    def halt(progress):
        if progress.step == 5:
            raise HaltedError

    changes = {"seed": 1, "settings": {"clipping": clipping}, "local": LocalTraining(epochs=2, batch=2)}
    plan = plan_named(kind, MUCH_NOISE, steps=7)
    whole = make_run(tokenizer, tmp_path / "whole", plan, **dict(changes))
    whole.run()
    with pytest.raises(HaltedError):
        make_run(tokenizer, tmp_path / "parts", plan, **dict(changes)).run(halt)
    second = make_run(tokenizer, tmp_path / "parts", plan, **dict(changes))
    guarantee = second.run(resume=True)
    assert not guarantee.is_private, "a test seed gives no guarantee"
    assert second.round.clipping.bound == pytest.approx(whole.round.clipping.bound)
    for a, b in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_another_run_cannot_be_gone_on_with(tokenizer, tmp_path):  # noqa: F811
    plan = plan_named(Tree(), 1.0, steps=6)
    run = make_run(tokenizer, tmp_path / "m", plan, seed=1)
    with pytest.raises(KeyboardInterrupt):
        run.run(lambda p: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(BadInputError, match="another plan"):
        make_run(tokenizer, tmp_path / "m", plan_named(Tree(restart=2), 1.0, 6), seed=1).run(resume=True)
    with pytest.raises(BadInputError, match="another federation"):
        make_run(tokenizer, tmp_path / "m", plan, seed=1, local=LocalTraining(rate=0.2)).run(resume=True)


def test_a_small_part_of_the_weights_can_be_trained(tokenizer, tmp_path):  # noqa: F811
    pytest.importorskip("peft")
    from tacit.training.strategies import apply_strategy

    plan = plan_named(square_root(3), 1.0, 3, cohort=5)
    run = make_run(tokenizer, tmp_path / "m", plan, model="bert", settings={"strategy": "lora"})
    frozen = run.model.bert.embeddings.word_embeddings.weight.detach().clone()
    run.model = apply_strategy(run.model, "lora", rank=2)
    run.run()
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "m")
    torch.testing.assert_close(loaded.bert.embeddings.word_embeddings.weight, frozen)


def test_runs_that_would_promise_too_much_are_refused(tokenizer, tmp_path):  # noqa: F811
    with pytest.raises(BadInputError, match="for 50 users, but there are 100"):
        make_run(tokenizer, tmp_path / "m", TrainingPlan(50, 20, 5, 1.0, 1e-3, unit=Unit.USER))
    with pytest.raises(BadInputError, match="count users"):
        make_run(tokenizer, tmp_path / "m", TrainingPlan(USERS, 50, 5, 1.0, 1e-3))
    run = make_run(tokenizer, tmp_path / "m", plan_named("fedavg", 1.0, 2))
    run.model.extra = torch.nn.BatchNorm1d(3)
    with pytest.raises(UnsupportedModelError, match="'extra' is a batch normalization"):
        run.run()


def test_clipping_needs_a_plan_with_privacy():
    assert make_round(TrainingPlan.without_privacy(records=4, batch=4, epochs=1), pairs(4)).clipping is None
    assert isinstance(make_round(TrainingPlan(4, 4, 1, 1.0, 1e-2, unit=Unit.USER), pairs(4)).clipping, FlatClipping)
