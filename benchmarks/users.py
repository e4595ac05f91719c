"""Drawing users or drawing their examples: which needs less noise at equal epsilon for users, and one learning run.

python benchmarks/users.py                # both: some minutes of one core
python benchmarks/users.py --part table   # or --part learn

The table is computed, not measured. Both ways take as many examples per step and draw at the same rate. The number is
the noise multiplier for drawing examples over that for drawing users: the noise on the mean gradient is less with
examples if users have more rows on average (of those that count) than this number. The most they can have is K.

The runs train a linear layer on fixed vectors (means of public word vectors, as in benchmarks/federated.py) by the
steps of `tacit train`: four posts of each of 1,600 bloggers, or one to four. Beside both ways stands what they replace:
DP-SGD on posts, whose promise to a record becomes one to a user by the general theorem of group privacy. Bound and
learning rate are the same for all and were not varied.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, stdev

import torch

from federated import Posts, load
from tacit.account.delta import automatic_delta
from tacit.guarantee import group_delta
from tacit.noise.source import StreamKey
from tacit.training.clipping import FlatClipping
from tacit.training.gradients import Batch, choose
from tacit.training.plan import TrainingPlan
from tacit.training.team import Team
from tacit.training.user_plans import ExamplePlan, UserPlan, UserTerms, compared
from tacit.training.user_rows import UserRows
from tacit.training.user_steps import plain_step, prepare_units, private_step
from tacit.training.users import group_by_user

EPSILONS = (1.0, 3.0, 8.0)
PASSES = 3.0
GROUP, RATE, LEARNING_PASSES = 4, 0.1, 10.0
BOUND, LEARNING_RATE = 0.5, 0.25
LEARNING_EPSILONS = (2.0, 8.0)


def show_table() -> None:
    print(f"noise multiplier for examples / for users, {PASSES:g} passes, delta = users^-1.5")
    for users in (2_000, 100_000):
        for rate in (0.01, 0.1):
            for group in (2, 4, 16, 64):
                line = f"{users:7,} users, rate {rate:4g}, K = {group:2}:"
                for epsilon in EPSILONS:
                    examples = users * group
                    terms = UserTerms(epsilon, users, examples, group, round(rate * examples), PASSES)
                    both = compared(terms)
                    if both.examples is None:
                        line += f"   epsilon {epsilon:g}: {both.refused}"
                        continue
                    ratio = both.examples.multiplier / both.users.multiplier
                    line += f"   epsilon {epsilon:g}: {ratio:5.2f}"
                print(line, flush=True)


@dataclass
class Task:
    """Posts of the authors to learn from, and of others to test on."""

    train: Posts
    test: Posts
    users: UserRows

    @classmethod
    def of(cls, train: Posts, test: Posts, *, uneven: bool) -> Task:
        """With all posts of an author, or with one to four of them."""
        seen: dict[str, int] = {}
        kept = []
        for place, author in enumerate(train.authors):
            seen[author] = seen.get(author, 0) + 1
            if not uneven or seen[author] <= 1 + len(seen) % 4:
                kept.append(place)
        part = Posts(train.vectors[kept], train.labels[kept], [train.authors[place] for place in kept])
        return cls(part, test, UserRows(group_by_user(part.authors), GROUP))


def plan_of(way: str, epsilon: float, task: Task) -> TrainingPlan:
    posts, users = task.users.counted, len(task.users.users)
    terms = UserTerms(epsilon, users, posts, GROUP, round(RATE * posts), LEARNING_PASSES)
    if way == "users":
        return UserPlan.drawing_users(terms)
    if way == "group privacy":
        # Four posts change together: (4 e, delta (1 + e^e + ...)) must stay within the promise to a user.
        each = epsilon / GROUP
        delta = automatic_delta(users) / group_delta(each, 1e-9, GROUP) * 1e-9
        return TrainingPlan.calibrated(
            epsilon=each, records=posts, batch=terms.batch, epochs=LEARNING_PASSES, delta=delta
        )
    return ExamplePlan.drawing_examples(replace(terms, epsilon=math.inf) if way == "no noise" else terms)


def accuracy(plan: TrainingPlan, task: Task, seed: int) -> float:
    """Train a linear layer by the steps of `tacit train`, with the bound and the learning rate that all ways have."""
    vectors, labels = torch.from_numpy(task.train.vectors), torch.from_numpy(task.train.labels)
    model = torch.nn.Linear(vectors.shape[1], 2)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)

    def loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

    def collate(rows: Sequence[int]) -> Batch:
        return {"x": vectors[list(rows)], "y": labels[list(rows)]}

    users = None if not isinstance(plan, UserPlan | ExamplePlan) else task.users
    shared = (collate, 1_000, print, None, Team())
    if plan.private:
        probes = [collate(range(3)), collate(range(5))]
        engine, _ = choose(model, loss, probes)
        prepare_units(plan, engine, model, probes, sixteen=False)
        step = private_step(
            plan, users, shared, engine=engine, clipping=FlatClipping(BOUND), model=model, public=None, shapes=None,
            alone=False,
        )  # fmt: skip
    else:
        step = plain_step(plan, users, shared, model=model, loss=loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda number: 1.0 - number / plan.steps)
    key = StreamKey.from_test_seed(seed)
    for number in range(plan.steps):
        step.run(number, key)
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        guesses = model(torch.from_numpy(task.test.vectors)).argmax(1).numpy()
    return float((guesses == task.test.labels).mean())


def show_learning(seeds: int) -> None:
    train, test = load("gender", "words")
    print(
        f"gender of bloggers from a post, {len(set(train.authors)):,} to learn from, {len(test.labels):,} posts of "
        f"others to test on; rate {RATE:g}, {LEARNING_PASSES:g} passes, K = {GROUP}; accuracy, {seeds} seeds"
    )
    for uneven in (False, True):
        task = Task.of(train, test, uneven=uneven)
        print(f"{'one to four posts' if uneven else 'four posts'} of each ({task.users.counted:,})")
        print(f"  no noise{'':24}{_scored(plan_of('no noise', math.inf, task), task, seeds)}")
        for epsilon in LEARNING_EPSILONS:
            for way in ("users", "examples", "group privacy"):
                plan = plan_of(way, epsilon, task)
                noise = plan.multiplier / plan.batch
                print(f"  epsilon {epsilon:g}, {way:14} noise {noise:.4f} {_scored(plan, task, seeds)}", flush=True)


def _scored(plan: TrainingPlan, task: Task, seeds: int) -> str:
    scores = [accuracy(plan, task, seed) for seed in range(seeds)]
    return f"{mean(scores):.3f} ({stdev(scores):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("both", "table", "learn"), default="both")
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.part in ("both", "table"):
        show_table()
    if arguments.part in ("both", "learn"):
        show_learning(arguments.seeds)


if __name__ == "__main__":
    main()
