"""`tacit federate`: the promise of private training made to users, each with any number of rows."""

from __future__ import annotations

from tacit.cli.task_commands import TaskGroup
from tacit.cli.train import HELP as HELP_OF_TASKS
from tacit.cli.training_display import shown_training
from tacit.jobs.federate import CONFIGS, run

HELP = {
    **HELP_OF_TASKS,
    "classify": "One label for each text, or pair of texts: tacit federate classify reviews.csv --user-column author "
    "--epsilon 3 -o model",
}

command = TaskGroup(
    "federate",
    CONFIGS,
    shown_training(run),
    HELP,
    help="Train a model so that no single user can be recognized in it, in a simulation of federated training; name "
    "the task first: tacit federate classify …",
)
