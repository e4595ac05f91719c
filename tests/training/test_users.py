"""Steps over users: no user adds more than the bound, whatever rows they have and whoever is beside them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.account.delta import automatic_delta  # noqa: E402
from tacit.account.sgd import sgd_epsilon  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.guarantee import Adjacency, Unit  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.text.identity import user_name  # noqa: E402
from tacit.training import step as steps  # noqa: E402
from tacit.training.clipping import MARGIN, FlatClipping  # noqa: E402
from tacit.training.gradients import UNITS  # noqa: E402
from tacit.training.gradients.check import ENGINES  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.public_gradients import Preconditioned  # noqa: E402
from tacit.training.sixteen import in_sixteen  # noqa: E402
from tacit.training.step import PrivateStep  # noqa: E402
from tacit.training.team import Team  # noqa: E402
from tacit.training.unit_step import PlainUnitStep, PrivateUnitStep  # noqa: E402
from tacit.training.user_plans import ExamplePlan, UserPlan, UserTerms, compared  # noqa: E402
from tacit.training.user_rows import UserRows  # noqa: E402
from tacit.training.user_steps import check_users, drawn_by, prepare_units  # noqa: E402
from tacit.training.users import Users, group_by_user  # noqa: E402
from tests.training.test_gradients import Recurrent, recurrent_loss  # noqa: E402
from tests.training.zoo import batch  # noqa: E402

SIZES = [1, 1, 2, 3, 1, 5, 2, 1, 4, 12]
"""Rows of each user; the last one has most."""
USERS = Users(tuple(tuple(range(sum(SIZES[:i]), sum(SIZES[: i + 1]))) for i in range(len(SIZES))))
ROWS = batch(sum(SIZES), seed=4)
PROBES = [batch(3), batch(5, seed=3)]
TERMS = UserTerms(epsilon=1.0, users=200, examples=1_600, group=8, batch=64, epochs=0.2, delta=1e-4)
BOUND = 0.5


def collate(numbers):
    return {name: values[list(numbers)] for name, values in ROWS.items()}


def model_of_steps():
    torch.manual_seed(0)
    return Recurrent().eval()


def user_step(
    engine="taps", *, users=USERS, most=4, physical=32, most_together=3, bound=BOUND, model=None, sixteen=False,
    public=None,
):  # fmt: skip
    """A step that draws users and adds next to no noise."""
    model = model_of_steps() if model is None else model
    worker = ENGINES[engine](model, recurrent_loss)
    worker.learn(*PROBES)
    if sixteen:
        worker.loss = in_sixteen(worker.loss, torch.device("cpu"))
    rows = UserRows(users, most)
    size = len(users)
    plan = UserPlan(size, size, 1, 1e-9, 1e-3, group=most, examples=rows.counted)
    trial = prepare_units(plan, worker, model, PROBES, sixteen=sixteen)
    assert trial.alone is sixteen
    return PrivateUnitStep(
        plan, collate, physical, lengths=np.full(sum(SIZES), 9), engine=worker, clipping=FlatClipping(bound),
        rows=rows, most_together=0 if trial.alone else most_together, public=public,
    )  # fmt: skip


def summed(step, number=0, key=None):
    """The clipped sum of a step, without its noise."""
    step.run(number, key or StreamKey.from_test_seed(5))
    return {name: p.grad.clone() * step.plan.batch for name, p in step.engine.parameters.items()}


def distance(first, other):
    return math.sqrt(sum(float((first[name] - other[name]).double().square().sum()) for name in first))


@pytest.fixture(autouse=True)
def no_noise(monkeypatch):
    """The sums themselves are looked at."""
    monkeypatch.setattr(steps, "add_noise", lambda sums, scale, source, parts=None: None)


WINDOWS = [1 + record % 3 for record in range(sum(SIZES))]
"""Rows of each record: a long text is read in windows."""


def collate_windows(records):
    ends = np.cumsum(WINDOWS)
    rows = [row for record in records for row in range(ends[record] - WINDOWS[record], ends[record])]
    units = np.repeat(np.arange(len(records)), [WINDOWS[record] for record in records])
    return {**{name: values[rows] for name, values in batch(sum(WINDOWS), seed=4).items()}, UNITS: torch.tensor(units)}


@pytest.mark.parametrize("engine", ["taps", "vmap", "loop"])
@pytest.mark.parametrize("most_together", [0, 3, 100])
def test_windows_of_records_of_users_are_clipped_once_for_the_user(engine, most_together):
    """A user's gradient is the mean over records of the sums over their windows, clipped as one vector: autograd says
    so, for users beside others and for users alone."""
    model = model_of_steps()
    worker = ENGINES[engine](model, recurrent_loss)
    probes = [{**batch(3), UNITS: torch.tensor([0, 0, 1])}, {**batch(5, seed=3), UNITS: torch.tensor([0, 1, 1, 2, 2])}]
    worker.learn(*probes)
    most = max(SIZES)
    rows = UserRows(USERS, most)
    plan = UserPlan(len(SIZES), len(SIZES), 1, 1e-9, 1e-3, group=most, examples=rows.counted)
    assert not prepare_units(plan, worker, model, probes, sixteen=False).alone
    step = PrivateUnitStep(
        plan, collate_windows, 64, lengths=np.full(sum(SIZES), 9), engine=worker, clipping=FlatClipping(BOUND),
        rows=rows, most_together=most_together,
    )  # fmt: skip
    made = summed(step)
    expected = {name: torch.zeros_like(value) for name, value in made.items()}
    parameters = dict(model.named_parameters())
    for own in USERS.rows:
        examples = {name: value for name, value in collate_windows(own).items() if name != UNITS}
        loss = recurrent_loss(model, examples).sum() / len(own)
        gradients = dict(zip(made, torch.autograd.grad(loss, [parameters[name] for name in made]), strict=True))
        norm = math.sqrt(sum(float(value.double().square().sum()) for value in gradients.values()))
        for name, value in gradients.items():
            expected[name] += value * min(1.0, BOUND / norm)
    assert distance(made, expected) <= 1e-3 * BOUND * len(SIZES)


@pytest.mark.parametrize("engine", ["taps", "vmap", "loop"])
@pytest.mark.parametrize(("physical", "most_together"), [(64, 3), (64, 100), (8, 3), (1, 3), (64, 0)])
def test_a_step_is_the_sum_of_one_user_at_a_time(engine, physical, most_together):
    """Whatever fits together into memory, against autograd on the mean loss of each user's rows."""
    step = user_step(engine, physical=physical, most_together=most_together)
    ours = summed(step)
    expected = {name: torch.zeros_like(p) for name, p in step.engine.parameters.items()}
    chosen = step.rows.of(np.arange(len(USERS)), 0, StreamKey.from_test_seed(5))
    assert [len(rows) for rows in chosen] == [min(size, 4) for size in SIZES]
    for rows in chosen:
        losses = recurrent_loss(step.engine.model, collate(rows.tolist()))
        gradients = torch.autograd.grad(losses.mean(), list(expected_parameters(step).values()))
        norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients))
        factor = min(1.0, BOUND / norm) * (1.0 - MARGIN)
        for name, gradient in zip(expected, gradients, strict=True):
            expected[name] += factor * gradient
    assert distance(ours, expected) < 1e-4 * BOUND


def expected_parameters(step):
    return {name: p for name, p in step.engine.model.named_parameters() if name in step.engine.parameters}


def without_last(users):
    return Users(users.rows[:-1])


@pytest.mark.parametrize(("physical", "most_together"), [(64, 3), (64, 100), (1, 3)])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_user_more_moves_the_sum_by_at_most_the_bound(physical, most_together, scale):
    """The canary: a user with most rows, all of them steep, against the same data without the user; end to end through
    sampling, choice of rows, batches, engine and clipping. All others are drawn as before."""
    sums, drawn = [], []
    for users in (USERS, without_last(USERS)):
        model = model_of_steps()
        step = user_step(users=users, most=6, physical=physical, most_together=most_together, model=model)
        plain = step.engine.loss

        def steep(model, examples, plain=plain):
            losses = plain(model, examples)
            # Rows of the canary are those of its own ids, wherever they stand.
            mine = (examples["input_ids"][:, None] == ROWS["input_ids"][-12:]).all(-1).any(-1)
            return torch.where(mine, scale * losses, losses)

        step.engine.loss = steep
        sums.append(summed(step))
        drawn.append({unit: rows.tolist() for unit, rows in step._rows.items()})
    assert {unit: drawn[0][unit] for unit in drawn[1]} == drawn[1]
    moved = distance(*sums)
    assert moved <= BOUND
    if scale > 1.0:
        assert moved > 0.99 * BOUND, "a canary that is not clipped shows nothing"


def test_with_16_bits_the_gradient_of_a_user_depends_on_no_other():
    """To the last bits of single precision, where the rounding of 16 bits would be a thousand times as large: each user
    beside all others, and in a step of one's own."""
    together = summed(user_step(sixteen=True, physical=3))
    exact = summed(user_step(physical=3))
    alone = {name: torch.zeros_like(value) for name, value in together.items()}
    for number in range(len(USERS)):
        step = user_step(sixteen=True, physical=3)
        step.draw = lambda step, key, number=number: np.array([number])
        for name, value in summed(step).items():
            alone[name] += value
    assert distance(together, alone) < 1e-6 * BOUND
    assert 1e-4 * BOUND < distance(together, exact) < 0.1 * BOUND, "it is computed with 16 bits, and nearly right"


@pytest.mark.parametrize("most_together", [0, 3, 100])
def test_public_gradients_scale_the_gradient_of_a_user_before_it_is_clipped(most_together):
    """Against autograd: the mean over the rows of a user, times the scales, is one vector with one bound."""
    model = model_of_steps()
    plan = UserPlan(10, 10, 1, 1e-9, 1e-3, group=4, examples=40)
    public = Preconditioned(plan, collate, model=model, loss=recurrent_loss, rows=20)
    step = user_step(model=model, most_together=most_together, public=public)
    ours = summed(step)
    scales = public._scales
    assert max(float(value.max() / value.min()) for value in scales.values()) > 2.0
    parameters = expected_parameters(step)
    expected = {name: torch.zeros_like(value) for name, value in ours.items()}
    for rows in step.rows.of(np.arange(len(USERS)), 0, StreamKey.from_test_seed(5)):
        losses = recurrent_loss(model, collate(rows.tolist()))
        made = dict(zip(parameters, torch.autograd.grad(losses.mean(), list(parameters.values())), strict=True))
        made = {name: value * scales[name] for name, value in made.items()}
        norm = math.sqrt(sum(float(value.double().square().sum()) for value in made.values()))
        for name, value in made.items():
            expected[name] += min(1.0, BOUND / norm) * value
    assert distance(ours, expected) < 1e-3 * BOUND * len(USERS)


def example_step(users, *, batch_size, most, model, scale=1.0):
    """A step that draws the examples of users."""

    def loss(model, examples):
        losses = recurrent_loss(model, examples)
        mine = (examples["input_ids"][:, None] == ROWS["input_ids"][-12:]).all(-1).any(-1)
        return torch.where(mine, scale * losses, losses)

    worker = ENGINES["taps"](model, loss)
    worker.learn(*PROBES)
    rows = UserRows(users, most)
    plan = ExamplePlan(rows.counted, batch_size, 1, 1e-9, 1e-3, group=most, users=len(users))
    return PrivateStep(
        plan, collate, 7, draw=drawn_by(plan, rows), engine=worker, clipping=FlatClipping(BOUND)
    )  # fmt: skip


def test_a_user_more_moves_the_sum_by_the_bound_for_each_drawn_example_at_most():
    rows = UserRows(USERS, 6)
    everything, others = rows.counted, UserRows(without_last(USERS), 6).counted
    sums = []
    for users, count in ((USERS, everything), (without_last(USERS), others)):
        step = example_step(users, batch_size=count, most=6, model=model_of_steps(), scale=1e3)
        sums.append(summed(step))
        assert len(step.drawn(0, StreamKey.from_test_seed(5))) == count, "12 rows of a user, of which 6 count"
    moved = distance(*sums)
    assert BOUND < moved <= 6 * BOUND


def test_how_many_examples_of_a_user_are_drawn_is_binomial():
    """Against the law that is accounted, in 4,000 steps: chi-square of 4 degrees, 1 in 1,000 above 18.5."""
    plan = ExamplePlan(UserRows(USERS, 4).counted, 8, 1, 1.0, 1e-3, group=4, users=len(USERS))
    draw = drawn_by(plan, UserRows(USERS, 4))
    mine = set(USERS.rows[-1])
    key = StreamKey.from_test_seed(8)
    seen = np.zeros(5)
    for number in range(4_000):
        seen[sum(row in mine for row in draw(number, key).tolist())] += 1
    law = np.array([math.comb(4, j) * plan.rate**j * (1 - plan.rate) ** (4 - j) for j in range(5)])
    assert float((np.square(seen - 4_000 * law) / (4_000 * law)).sum()) < 18.5


def test_every_row_of_a_user_counts_as_often_and_those_of_others_do_not_matter():
    """A row counts in a third of the steps (6 standard deviations: 1 in 10^9 for each of 12)."""
    rows, fewer = UserRows(USERS, 4), UserRows(without_last(USERS), 4)
    key = StreamKey.from_test_seed(2)
    seen = np.zeros(sum(SIZES))
    last = np.array([len(SIZES) - 1])
    for number in range(600):
        chosen = rows.of(last, number, key)[0]
        assert len(set(chosen.tolist())) == 4
        seen[chosen] += 1
    assert np.abs(seen[-12:] - 200).max() < 6 * math.sqrt(600 * (1 / 3) * (2 / 3))
    for first, other in zip(rows.of(np.arange(9), 0, key), fewer.of(np.arange(9), 0, key), strict=True):
        assert first.tolist() == other.tolist()


def test_a_user_with_a_broken_row_adds_nothing_and_stops_nothing():
    step = user_step()
    plain = step.engine.loss

    def broken(model, examples):
        losses = plain(model, examples)
        return losses * torch.where((examples["input_ids"] == ROWS["input_ids"][3]).all(-1), math.inf, 1.0)

    step.engine.loss = broken
    said = []
    step.warn = said.append
    sums = summed(step)
    assert all(bool(torch.isfinite(value).all()) for value in sums.values())
    assert step.lost == 1
    assert len(said) == 1


def test_processes_share_users_and_never_part_one():
    whole = summed(user_step())
    parts = []
    for rank in (0, 1):
        step = user_step()
        step.team = AlonePart(rank, 2)
        parts.append(summed(step))
    assert distance(whole, {name: parts[0][name] + parts[1][name] for name in whole}) < 1e-4 * BOUND


class AlonePart(Team):
    """One of two processes, whose sums are added up by the test."""

    def add_up(self, values):
        return values


def test_a_plain_step_is_the_mean_over_users_of_the_means_over_their_rows():
    from tacit.training.gradients.unit_sums import weighted

    model, rows = model_of_steps(), UserRows(USERS, 100)
    plan = UserPlan(len(USERS), len(USERS), 1, 0.0, 0.0, private=False, group=100, examples=rows.counted)
    step = PlainUnitStep(plan, collate, 8, rows=rows, model=model, loss=weighted(recurrent_loss))
    facts = step.run(0, StreamKey.from_test_seed(1))
    losses = recurrent_loss(model, collate(range(sum(SIZES))))
    means = torch.stack([losses[list(mine)].mean() for mine in USERS.rows])
    assert facts.loss == pytest.approx(means.mean().item(), rel=1e-5)
    expected = torch.autograd.grad(means.mean(), list(model.parameters()), allow_unused=True)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        if gradient is not None:
            torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


# Plans ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison():
    return compared(TERMS)


def test_both_plans_keep_their_epsilon_for_users_and_cost_the_same(comparison):
    users, examples = comparison.users, comparison.examples
    assert users.batch == 8
    assert examples.rate == pytest.approx(users.rate)
    assert examples.steps == users.steps
    for plan in (users, examples):
        assert plan.unit is Unit.USER
        assert 0.99 < plan.epsilon() <= 1.0
        assert plan.units == 200
        guarantee = plan.guarantee(steps=plan.steps, secure=True, what="x", parameters={})
        assert guarantee.unit is Unit.USER
        assert any("at most 8 of each user, is public" in line for line in guarantee.assumptions)
        assert any("several user names" in line for line in guarantee.not_covered)
    # For one record of a user alone the noise would be far more than enough.
    alone = sgd_epsilon(
        sampling_rate=examples.rate, noise_multiplier=examples.multiplier, steps=examples.steps, delta=1e-4
    )
    assert alone < 0.5


def test_the_choice_is_the_one_with_less_noise_and_says_why(comparison):
    """Every user has as many rows as count, or most have one."""
    uneven = compared(replace(TERMS, group=2, examples=220, batch=22))
    assert isinstance(uneven.chosen, UserPlan)
    assert isinstance(comparison.chosen, ExamplePlan)
    for each in (comparison, uneven):
        other = each.users if each.chosen is each.examples else each.examples
        assert each.chosen.noise_of_mean < other.noise_of_mean
        assert f"{each.users.noise_of_mean:.3g} of the bound" in each.reason


def test_one_row_of_each_user_is_training_on_records():
    comparison = compared(replace(TERMS, group=1, examples=200, batch=20))
    record = TrainingPlan.calibrated(epsilon=1.0, records=200, batch=20, epochs=TERMS.epochs, delta=1e-4)
    assert comparison.users.multiplier == record.multiplier
    assert comparison.examples.multiplier == pytest.approx(record.multiplier, rel=1e-6)


def test_what_drawing_examples_cannot_promise_is_refused_or_left_to_drawing_users():
    replaced = replace(TERMS, adjacency=Adjacency.REPLACE_ONE)
    assert isinstance(compared(replaced).chosen, UserPlan)
    with pytest.raises(BadParameterError, match="adding or removing a user"):
        ExamplePlan.drawing_examples(replaced)
    many = replace(TERMS, group=2_000, examples=1_600)
    assert isinstance(compared(many).chosen, UserPlan)
    assert "not possible" in compared(many).reason


def test_delta_is_below_one_over_the_users_and_chosen_for_them():
    """However many examples there are."""
    terms = replace(TERMS, group=1, delta=None)
    assert ExamplePlan.drawing_examples(terms).delta == automatic_delta(200)
    with pytest.raises(BadParameterError, match="not below one over the 200"):
        ExamplePlan(1_600, 64, 5, 1.0, 0.006, group=8, users=200)
    assert ExamplePlan(1_600, 64, 5, 1.0, 0.004, group=8, users=200).delta == 0.004


def test_a_plan_of_other_users_is_never_run():
    rows = UserRows(USERS, 4)
    right = UserPlan(10, 5, 1, 1.0, 1e-3, group=4, examples=rows.counted)
    check_users(right, rows, sum(SIZES))
    check_users(TrainingPlan(10, 5, 1, 1.0, 1e-3), None, 10)
    wrong = [
        (TrainingPlan(10, 5, 1, 1.0, 1e-3), rows, 32),
        (right, None, 32),
        (replace(right, group=5), rows, 32),
        (right, rows, 31),
        (ExamplePlan(32, 5, 1, 1.0, 1e-3, group=4, users=10), rows, 32),
    ]
    for plan, users, count in wrong:
        with pytest.raises(BadInputError, match="other users"):
            check_users(plan, users, count)


def test_one_user_however_it_was_written():
    names = ["7", "7.0", " 7", "7e0", "Zoe\u0301", "Zo\u00e9 ", "07", "7.5"]
    assert [len(mine) for mine in group_by_user(names).rows] == [4, 2, 1, 1]
    assert user_name("nan") == ""
    assert user_name("1e999") == "1e999"
    for missing in ("", "  ", "nan"):
        with pytest.raises(BadInputError, match="every row must belong to a user"):
            group_by_user(["a", missing, "b"])
