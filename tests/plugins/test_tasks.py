"""A task that only a package has: trained, run from a file, predicted with and trained by users, by its name alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.plugins.processes import PACKAGE, call, fresh, tacit
from tests.plugins.test_plugins import EXAMPLE

pytest.importorskip("torch")

COMMAND = "from tacit.cli.main import main; main()"
SMALL = ("--model", "bilstm-1x8", "--length", "12")


@pytest.fixture
def lines(tmp_path: Path) -> str:
    rows = [
        {"line": f"{words} {i}", "mood": mood, "who": f"user {i}"}
        for i in range(20)
        for words, mood in (("the sun is bright", "gay"), ("the rain is cold", "sad"))
    ]
    path = tmp_path / "lines.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def card_of(folder: Path) -> dict:
    return json.loads((folder / "card.json").read_text())


def test_a_task_is_trained_and_predicts(tmp_path, lines):
    """Its columns, its options with choices and ranges, its measure and its settings are those of its class."""
    model = tmp_path / "model"
    written = tacit("train", "toy-lines", lines, "-e", "inf", *SMALL, "--epochs", "40", "--batch", "20",
                    "--learning-rate", "0.05", "--seed", "1", "--order", "backward", "--weight", "2", "--test", lines,
                    "-o", str(model), "-q")  # fmt: skip
    assert "share of right moods: 1.0000" in written
    saved = json.loads((model / "task.json").read_text())
    assert (saved["task"], saved["order"], saved["weight"]) == ("toy-lines", "backward", 2.0)
    assert saved["columns"] == {"line": "line", "mood": "mood"}
    tacit("predict", str(model), lines, "-o", str(tmp_path / "predicted.csv"), "-q")
    predicted = list(csv.DictReader((tmp_path / "predicted.csv").read_text().splitlines()))
    assert all(row["prediction"] == row["mood"] for row in predicted)
    gone = call(COMMAND, "predict", str(model), lines, "-o", str(tmp_path / "other.csv"), package=None)
    assert gone.returncode == 2
    assert "there is no task 'toy-lines'" in gone.stderr
    assert "--plugin" in gone.stderr


IN_PYTHON = """
import sys, tacit
from pathlib import Path
from tacit.jobs.registry import config_class
data, folder = sys.argv[1:]
options = dict(epsilon=8, model="bilstm-1x8", length=12, epochs=2, batch=10, weight=1.5)
result = tacit.train("toy-lines", data, output=folder, **options)
config = config_class("train toy-lines")(data=data, output=Path(folder), **options)
print(config.to_toml())
"""


def test_its_card_says_what_was_promised_and_what_was_assumed(tmp_path, lines):
    done = call(IN_PYTHON, lines, str(tmp_path / "model"))
    assert done.returncode == 0, done.stderr
    card = card_of(tmp_path / "model")
    promise = card["guarantee"]
    assert promise["mechanism"] == "DP-ADAMW (toy-lines, strategy full)"
    assert promise["epsilon"] <= 8
    assert any("'toy-lines' is code of a plug-in (tacit_toy.lines" in sentence for sentence in promise["assumptions"])
    text = json.dumps(card)
    assert '"job": "train toy-lines"' in text
    assert '"weight": 1.5' in text
    # The same configuration, from a file, in another folder.
    (tmp_path / "job.toml").write_text(done.stdout.replace(str(tmp_path / "model"), str(tmp_path / "again")))
    tacit("run", str(tmp_path / "job.toml"), "-q")
    assert card_of(tmp_path / "again")["guarantee"]["epsilon"] == promise["epsilon"]


def test_users_are_promised_the_same(tmp_path, lines):
    tacit("federate", "toy-lines", lines, "--user-column", "who", "-e", "20", *SMALL, "--strategy", "full", "--cohort",
          "5", "--epochs", "1", "--order", "backward", "-o", str(tmp_path / "model"), "-q")  # fmt: skip
    promise = card_of(tmp_path / "model")["guarantee"]
    assert promise["unit"] == "user"
    assert "(toy-lines, strategy full)" in promise["mechanism"]
    assert any("is code of a plug-in" in sentence for sentence in promise["assumptions"])
    assert json.loads((tmp_path / "model" / "task.json").read_text())["order"] == "backward"


def test_help_lists_a_task_without_importing_it():
    code = (
        "import sys; from tacit.cli.main import run; run(['train', '--help']);"
        "print(sorted({'torch', 'tacit_toy'} & set(sys.modules)))"
    )
    done = fresh(code)
    assert "'tacit train toy-lines --help' explains it." in done.stdout
    assert done.stdout.strip().endswith("[]")
    assert "toy-lines" not in tacit("train", "--help", package=None)
    explained = tacit("train", "toy-lines", "--help")
    for words in ("The mood of each line.", "--mood-column", "--order forward|backward", "how much a loss counts"):
        assert words in explained


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--weight", "7"], "--weight must be at most 2.0"),
        (["--order", "sideways"], "--order must be one of 'forward' or 'backward'"),
        (["--line-column", "verse"], "verse"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(tmp_path, lines, options, said):
    done = call(COMMAND, "train", "toy-lines", lines, "-e", "1", *SMALL, *options, "-o", str(tmp_path / "model"))
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"toy-lines"', '"check"', "there is already a task 'check'"),
        ('("line", "mood")', '("user", "mood")', "would be the option 'user_column'"),
        ("    weight: float", "    bound: float", "would be the option 'bound'"),
    ],
)
def test_a_task_that_takes_what_is_not_its_own_is_refused(tmp_path, lines, old, new, said):
    text = (PACKAGE / "tacit_toy" / "lines.py").read_text()
    assert old in text
    name = "check" if "check" in new else "toy-lines"
    registered = f"\n\nfrom tacit.training.tasks import TASKS\nTASKS.register({name!r}, Lines)\n"
    (tmp_path / "own_task.py").write_text(text.replace(old, new) + registered)
    done = call(COMMAND, "--plugin", str(tmp_path / "own_task.py"), "federate", name, lines, "--user-column", "who",
                "-e", "1", "-o", str(tmp_path / "model"), package=None)  # fmt: skip
    assert done.returncode == 2
    assert said in done.stderr


DERIVED = """
from tacit.training.tasks import TASKS, Classification
class Tone(Classification):
    name = "tone"
    help = "the tone of a text"
TASKS.register("tone", Tone)
"""


def test_a_task_in_a_file_that_derives_from_one_of_tacit_has_its_options(tmp_path):
    (tmp_path / "tone_task.py").write_text(DERIVED)
    explained = tacit("--plugin", str(tmp_path / "tone_task.py"), "train", "tone", "--help", package=None)
    for words in ("The tone of a text.", "--label-smoothing", "--pooling", "--pair-column"):
        assert words in explained
    assert "The tone of a text." in tacit("--plugin", str(tmp_path / "tone_task.py"), "train", "--help", package=None)


def test_the_task_of_the_example_is_learned(tmp_path):
    rows = [{"text": text, "topics": topics} for text, topics in (
        ("sun and sea", "sun|sea"), ("sun and sand", "sun"), ("waves and sea", "sea"), ("grass and sand", ""),
    )] * 6  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    data, plugin = str(tmp_path / "rows.jsonl"), ("--plugin", str(EXAMPLE))
    written = tacit(*plugin, "train", "topics", data, "-e", "inf", "--labels", "sun,sea", *SMALL, "--epochs", "60",
                    "--batch", "12", "--learning-rate", "0.05", "--seed", "1", "--test", data, "-o",
                    str(tmp_path / "model"), "-q", package=None)  # fmt: skip
    assert "micro-F1: 1.0000" in written


MIXED = """
from tacit_toy.lines import Lines
from tacit.training.tasks import TASKS
class Mixed(Lines):
    name = "mixed"
    def loss(self, model, batch):
        losses = super().loss(model, batch)
        return losses / losses.detach().mean()
TASKS.register("mixed", Mixed)
"""


def test_a_loss_that_mixes_records_does_not_pass_where_they_are_computed_together(tmp_path, lines):
    (tmp_path / "mixed_task.py").write_text(MIXED)
    done = call(COMMAND, "--plugin", str(tmp_path / "mixed_task.py"), "train", "mixed", lines, "-e", "3", *SMALL,
                "--batch", "10", "--gradient-engine", "taps", "-o", str(tmp_path / "model"))  # fmt: skip
    assert done.returncode == 2
    assert "taps" in done.stderr
    assert not (tmp_path / "model" / "card.json").exists()


DESCRIBED = """
import sys, tacit
from tacit import plugins
from tacit.jobs.training import records
records.carry_out = lambda config, run, *others, **options: print(run.described())
plugins.use(sys.argv[1])
tacit.train("mixed", sys.argv[2], epsilon=3, model="bilstm-1x8", length=12, batch=10, output=sys.argv[3])
"""


def test_a_run_that_other_code_began_is_another_run(tmp_path, lines):
    described = []
    for text in (MIXED, MIXED + "# changed\n"):
        (tmp_path / "mixed_task.py").write_text(text)
        done = call(DESCRIBED, str(tmp_path / "mixed_task.py"), lines, str(tmp_path / "model"))
        assert done.returncode == 0, done.stderr
        described.append(json.loads(done.stdout))
    first, second = described
    assert [part for part in first if first[part] != second[part]] == ["code of the task"]
