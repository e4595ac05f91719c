"""`tacit federate`: the promise of private training made to users, each with any number of rows."""

import math
from typing import Annotated, Any

import typer

from tacit.cli.tasks import (
    HELP,
    Bound,
    Clipping,
    Curves,
    Data,
    Delta,
    Labels,
    Length,
    Model,
    Output,
    Quiet,
    Rank,
    Resume,
    Schedule,
    Seed,
    Strategy,
    Test,
    Tokenizer,
    Trials,
    carry_out,
    command_of,
    delta_of,
    load_network,
    make_task,
    noise_of,
    origin_of,
    read_rows,
    usual_rate,
)
from tacit.errors import BadInputError, BadParameterError

app = typer.Typer(
    help="Train a model so that no single user can be recognized in it, in a simulation of federated training; name "
    "the task first: tacit federate classify …",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

ALGORITHMS = ("fedavg", "ftrl")

UserColumn = Annotated[str, typer.Option("--user-column", help="The column that says whose row it is.")]
Algorithm = Annotated[
    str,
    typer.Option(help="fedavg (users drawn at random, secretly) or ftrl (users in a fixed order, correlated noise)."),
]
Epsilon = Annotated[
    float, typer.Option(help="The privacy budget of one user; 'inf' trains without privacy, for comparison.")
]
Cohort = Annotated[int, typer.Option("--cohort", help="Users per round, on average; large cohorts need less noise.")]
Passes = Annotated[float, typer.Option("--epochs", help="Passes over the users, on average.")]
Noise = Annotated[
    str | None, typer.Option("--noise", help="ftrl: buffered (default), banded, tree, or independent for comparison.")
]
Bands = Annotated[int, typer.Option(help="ftrl: bands of the banded noise, each a vector as large as what is trained.")]
LocalEpochs = Annotated[int, typer.Option("--local-epochs", help="Passes of a user over their own rows in a round.")]
LocalBatch = Annotated[int, typer.Option("--local-batch", help="Rows per local step.")]
LocalRate = Annotated[float, typer.Option("--local-rate", help="Learning rate of the local steps (SGD).")]
MostRows = Annotated[
    int, typer.Option("--rows-per-user", help="Most rows of a user that count in a round, drawn anew each time.")
]
Rate = Annotated[
    float | None, typer.Option("--learning-rate", help="Of the server. By default 1 for sgd, else as in 'tacit train'.")
]
Server = Annotated[str, typer.Option("--optimizer", help="Of the server: adam, adamw or sgd.")]
Momentum = Annotated[float, typer.Option(help="Of the server, for sgd.")]
Replace = Annotated[
    bool, typer.Option("--replace-one", help="Neighbors differ by replacing a user (twice the sensitivity).")
]


def _federate_command(
    data: Data,
    output: Output,
    epsilon: Epsilon,
    user_column: UserColumn,
    algorithm: Algorithm = "fedavg",
    model: Model = "minilm",
    strategy: Strategy = "head",
    delta: Delta = "auto",
    epochs: Passes = 5.0,
    cohort: Cohort = 100,
    noise: Noise = None,
    bands: Bands = 16,
    local_epochs: LocalEpochs = 1,
    local_batch: LocalBatch = 16,
    local_rate: LocalRate = 0.1,
    rows_per_user: MostRows = 128,
    learning_rate: Rate = None,
    optimizer: Server = "adam",
    momentum: Momentum = 0.0,
    schedule: Schedule = "linear",
    clipping: Clipping = "automatic",
    bound: Bound = 1.0,
    length: Length = None,
    replace_one: Replace = False,
    trials: Trials = 1,
    tokenizer: Tokenizer = None,
    rank: Rank = 8,
    labels: Labels = None,
    test: Test = None,
    tensorboard: Curves = False,
    resume: Resume = False,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """The options that all tasks share; see `_command`."""


def _command(task: str) -> Any:
    return command_of(task, _federate_command, lambda given, roles: _federate(task, given, roles))


for _task, _help in HELP.items():
    _example = ("tacit train classify reviews.csv", "tacit federate classify reviews.csv --user-column author")
    app.command(_task, help=_help.replace(*_example))(_command(_task))


def _federate(task_name: str, given: dict[str, Any], roles: dict[str, str]) -> None:
    from tacit.cli.terminal import error_console
    from tacit.text.files import read_columns
    from tacit.training.federated import FederatedRun, LocalTraining, group_by_user
    from tacit.training.run import Settings
    from tacit.training.team import Team

    rows = read_rows(given["data"], roles)
    tested = read_rows(given["test"], roles) if given["test"] else []
    column = given["user_column"]
    users = group_by_user(list(read_columns(given["data"], [column])[column]), column)
    task = make_task(task_name, given, roles)
    task.learn(rows)
    plan = _plan(given, len(users))
    local = LocalTraining(given["local_epochs"], given["local_batch"], given["local_rate"], given["rows_per_user"])
    strategy = given["strategy"]
    usual = 1.0 if given["optimizer"] == "sgd" else usual_rate(strategy, private=True)
    settings = Settings(
        optimizer=given["optimizer"],
        learning_rate=usual if given["learning_rate"] is None else given["learning_rate"],
        schedule=given["schedule"],
        clipping=given["clipping"],
        bound=given["bound"],
        strategy=strategy,
        model=given["model"],
        tensorboard=given["tensorboard"],
    )
    model, tokenizer = load_network(task, given, strategy)
    run = FederatedRun(
        task, model, tokenizer, rows, plan, settings, given["output"], given["seed"], given["trials"],
        error_console().print, origin_of(given), Team.from_environment(), users=users, local=local,
        momentum=given["momentum"],
    )  # fmt: skip
    said = [f"{len(users):,} users, {plan.steps:,} rounds of about {plan.batch:,}, {noise_of(plan)}"]
    if more := users.with_more_than(local.rows):
        said.append(f"{more:,} users have more than {local.rows:,} rows: that many of theirs count in a round")
    carry_out(run, given, tested, *said)


def _plan(given: dict[str, Any], users: int) -> Any:
    from tacit.guarantee import Adjacency, Unit
    from tacit.training.federated import VisitPlan
    from tacit.training.plan import Plan

    algorithm, cohort = given["algorithm"], given["cohort"]
    if algorithm not in ALGORITHMS:
        raise BadParameterError(f"there is no algorithm '{algorithm}': choose one of {', '.join(ALGORITHMS)}")
    if algorithm == "fedavg" and given["noise"] is not None:
        raise BadParameterError("--noise is for ftrl: fedavg draws users at random, and its noise is independent")
    if cohort > users:
        raise BadInputError(
            f"there are {users:,} users, fewer than a cohort of {cohort:,}: give a smaller --cohort, well below the "
            "number of users"
        )
    if given["epsilon"] == math.inf:
        return Plan.without_privacy(records=users, batch=cohort, epochs=given["epochs"], unit=Unit.USER)
    shared: dict[str, Any] = {
        "epsilon": given["epsilon"],
        "epochs": given["epochs"],
        "delta": delta_of(given["delta"]),
        "adjacency": Adjacency.REPLACE_ONE if given["replace_one"] else Adjacency.ADD_REMOVE,
        "releases": given["trials"],
    }
    if algorithm == "fedavg":
        return Plan.calibrated(records=users, batch=cohort, unit=Unit.USER, **shared)
    noise = given["noise"] or "buffered"
    return VisitPlan.ordered(
        users=users, cohort=cohort, noise=noise, bands=given["bands"], momentum=given["momentum"], **shared
    )
