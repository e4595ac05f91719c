"""`tacit train`: a model folder with its card, and clear sentences for what cannot be done."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.cli.main import app, run  # noqa: E402
from tests.training.test_run import rows, tiny, tokenizer  # noqa: E402, F401

from tacit.training.tasks import Classification  # noqa: E402  # isort: skip


@pytest.fixture
def folder(tokenizer, tmp_path):  # noqa: F811
    task = Classification(labels=["neg", "pos"])
    tiny(tokenizer, task).save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    with (tmp_path / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label"])
        writer.writeheader()
        writer.writerows(rows(300))
    return tmp_path


def train(folder, *more):
    arguments = ["train", "classify", folder / "data.csv", "--model", folder / "tiny", "--strategy", "full", *more]
    return run([str(argument) for argument in arguments])


def test_a_trained_folder_has_a_model_and_a_card(folder):
    assert train(folder, "--epsilon", 8, "--batch", 100, "--epochs", 2, "-o", folder / "out", "-q") == 0
    card = json.loads((folder / "out" / "card.json").read_text())
    assert card["guarantee"]["unit"] == "record"
    assert card["guarantee"]["epsilon"] <= 8
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder / "out")
    assert model.config.num_labels == 2


def test_what_was_trained_can_be_audited(folder, capsys):
    with (folder / "others.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label"])
        writer.writeheader()
        writer.writerows(rows(300, seed=5))
    assert train(folder, "--epsilon", 8, "--batch", 100, "--epochs", 1, "-o", folder / "out", "-q") == 0
    files = ["--members", folder / "data.csv", "--non-members", folder / "others.csv", "--column", "text"]
    arguments = ["audit", "model", folder / "out", *files, "--label-column", "label", "--json"]
    assert run([str(argument) for argument in arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert not report["refuted"]


@pytest.mark.parametrize(
    "more",
    [("--pooling", "mean"), ("--strategy", "frozen-lstm"), ("--model", "bilstm-1x8", "--tokenizer", "TINY")],
    ids=["mean", "lstm on top", "from scratch"],
)
def test_c3_the_folder_that_is_written_by_default_can_be_audited(folder, more, capsys):
    """Our own kinds of models, and above all the mean of all positions that MiniLM is trained with."""
    with (folder / "others.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "label"])
        writer.writeheader()
        writer.writerows(rows(100, seed=5))
    options = [str(folder / "tiny") if option == "TINY" else option for option in more]
    assert train(folder, "--epsilon", 8, "--batch", 100, "--epochs", 1, "-o", folder / "out", "-q", *options) == 0
    files = ["--members", folder / "data.csv", "--non-members", folder / "others.csv", "--column", "text"]
    capsys.readouterr()
    for label in (["--label-column", "label"], []):
        arguments = ["audit", "model", folder / "out", *files, *label, "--json"]
        assert run([str(argument) for argument in arguments]) == 0
        said = capsys.readouterr()
        assert not json.loads(said.out)["refuted"]
        assert "custom code" not in said.out + said.err, "no code of a folder is run, or asked about"


def test_c3_a_model_of_numbers_is_audited_by_its_errors(folder, capsys):
    for name, count, seed in (("numbers", 200, 0), ("others", 80, 5)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["text", "label"])
            writer.writeheader()
            writer.writerows({**row, "label": "5" if row["label"] == "pos" else "0"} for row in rows(count, seed=seed))
    arguments = ["train", "regress", folder / "numbers.csv", "--model", folder / "tiny", "--label-range", "0,5", "-q"]
    arguments += ["--epsilon", 8, "--batch", 100, "--epochs", 1, "-o", folder / "out"]
    assert run([str(argument) for argument in arguments]) == 0
    files = ["--members", folder / "numbers.csv", "--non-members", folder / "others.csv", "--column", "text"]
    capsys.readouterr()
    assert run([str(a) for a in ["audit", "model", folder / "out", *files, "--label-column", "label", "--json"]]) == 0
    assert not json.loads(capsys.readouterr().out)["refuted"]
    assert run([str(a) for a in ["audit", "model", folder / "out", *files, "--json"]]) == 0, "the folder names it"
    for name in ("numbers", "others"):
        (folder / f"{name}.csv").write_text(f"text\nfine {name}\nbad {name}\n")
    capsys.readouterr()
    assert run([str(a) for a in ["audit", "model", folder / "out", *files, "--json"]]) != 0
    assert "label" in capsys.readouterr().err


def test_c3_a_run_without_a_score_says_how_to_get_one(folder, capsys):
    assert train(folder, "--epsilon", 8, "--batch", 100, "--epochs", 1, "-o", folder / "out") == 0
    assert "tacit predict" in capsys.readouterr().err
    more = ("--test", folder / "data.csv")
    assert train(folder, "--epsilon", 8, "--batch", 100, "--epochs", 1, "-o", folder / "scored", *more) == 0
    assert "No score yet" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "options", "length"), [("answer", {}, 384), ("answer", {"length": 100}, 100), ("classify", {}, 64)]
)
def test_c3_questions_are_read_at_a_length_of_their_own(task, options, length):
    from tacit.jobs.train import CONFIGS
    from tacit.jobs.training.records import task_of

    config = CONFIGS[task](data="rows.csv", output="model", epsilon=1, labels="a,b", **options)
    assert task_of(config).length == length


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--epsilon", 8, "--batch", 5000), "fewer than a batch"),
        (("--epsilon", 8, "--batch", 100, "--delta", "0.5"), "not below one over"),
        (("--epsilon", 8, "--batch", 100, "--delta", "small"), "number or 'auto'"),
        (("--epsilon", 8, "--batch", 100, "--label-column", "star"), "star"),
        (("--epsilon", 8, "--batch", 100, "--strategy", "most"), "no strategy"),
        (("--epsilon", 8, "--batch", 100, "--clipping", "most"), "--clipping must be one of"),
        (("--epsilon", 8, "--batch", 100, "--resume"), "no unfinished run"),
        (("--epsilon", 8, "--batch", 100, "--trials", 0), "at least 1, not 0"),
        (("--epsilon", "inf", "--batch", 100, "--trials", 0), "at least 1, not 0"),
        (("--epsilon", 1e-4, "--batch", 300, "--epochs", 100), "nothing can be learned"),
        (("--epsilon", 8, "--batch", 0), "--batch must be at least 1"),
        (("--epsilon", "inf", "--batch", 0), "--batch must be at least 1"),
        (("--epsilon", 8, "--batch", 100, "--physical", 0), "--physical is a number of at least 1 or 'auto', not '0'"),
        (("--epsilon", 8, "--batch", 100, "--epochs", -5), "--epochs must be above 0"),
        (("--epsilon", 8, "--batch", 100, "--epochs", "nan"), "--epochs"),
        (("--epsilon", 8, "--batch", 100, "--length", 0), "leaves nothing of a text"),
        (("--epsilon", 8, "--batch", 100, "--length", 1), "leaves nothing of a text"),
        (("--epsilon", 8, "--batch", 100, "--learning-rate", 0), "--learning-rate must be above 0"),
        (("--epsilon", 8, "--batch", 100, "--rank", 0), "--rank must be at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(folder, more, message, capsys):
    assert train(folder, *more, "-o", folder / "out") == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out" / "model.safetensors").exists()


def test_check_prints_the_deviation_and_names_a_folder_without_a_tokenizer(folder, capsys):
    assert run(["train", "check", str(folder / "tiny")]) == 0
    assert "engine taps" in capsys.readouterr().out
    (folder / "tiny" / "tokenizer.json").unlink()
    (folder / "tiny" / "tokenizer_config.json").unlink()
    assert run(["train", "check", str(folder / "tiny")]) == 2
    assert "no tokenizer" in capsys.readouterr().err


def test_a_masked_model_is_trained_by_the_same_command(folder):
    config = transformers.BertConfig.from_pretrained(folder / "tiny")
    transformers.BertForMaskedLM(config).save_pretrained(folder / "tiny")
    options = ["--model", folder / "tiny", "--strategy", "full", "--epsilon", 8, "--batch", 100, "--epochs", 1, "-q"]
    arguments = ["train", "fill", folder / "data.csv", *options, "-o", folder / "filled"]
    assert run([str(argument) for argument in arguments]) == 0
    assert (folder / "filled" / "card.json").exists()


def write(folder, model, *more):
    options = ["--model", model, "--strategy", "full", "--epsilon", 8, "--batch", 100, "--epochs", 1, "-q"]
    return run([str(item) for item in ("train", "write", folder / "data.csv", *options, *more, "-o", folder / "w")])


def test_a_model_that_sees_the_words_it_predicts_cannot_learn_to_write(folder, capsys):
    transformers.BertForMaskedLM(transformers.BertConfig.from_pretrained(folder / "tiny")).save_pretrained(
        folder / "tiny"
    )
    assert write(folder, folder / "tiny") == 2
    assert "is no decoder" in capsys.readouterr().err
    assert not (folder / "w").exists()


def test_a_decoder_learns_to_write_and_a_head_that_is_new_is_said(folder, tokenizer, capsys):  # noqa: F811
    small = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 80, "tie_word_embeddings": False}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **small)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "tiny")
    assert write(folder, folder / "tiny") == 0
    assert "warning" not in capsys.readouterr().err
    transformers.GPT2ForSequenceClassification(config).save_pretrained(folder / "other")
    tokenizer.save_pretrained(folder / "other")
    assert write(folder, folder / "other", "--resume") == 2  # the run is finished: only the warning is of interest
    assert "saved as GPT2ForSequenceClassification: 1 of the weights" in capsys.readouterr().err


def test_each_task_asks_for_its_own_columns():
    called = CliRunner().invoke(app, ["train", "answer", "--help"])
    assert "--question-column" in called.output
    assert "--label-column" not in called.output


def test_help_names_the_tasks():
    called = CliRunner().invoke(app, ["train", "--help"])
    assert all(
        word in called.output
        for word in ("classify", "regress", "tag", "answer", "write", "fill", "translate", "check")
    )


def test_numbers_are_learned_within_their_known_range(folder, capsys):
    with (folder / "numbers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows((row["text"], 5 if row["label"] == "pos" else 0) for row in rows(300))
    shared = ["--model", folder / "tiny", "--strategy", "full", "--batch", 30, "--learning-rate", 0.01, "-q"]
    arguments = ["train", "regress", folder / "numbers.csv", *shared, "--epsilon", "inf", "--epochs", 4]
    arguments += ["--label-range", "0,5", "--test", folder / "numbers.csv", "-o", folder / "m"]
    assert run([str(argument) for argument in arguments]) == 0
    assert "Spearman" in capsys.readouterr().out
    assert json.loads((folder / "m" / "task.json").read_text())["scale"] == 2.5
    for wrong, message in (("5", "two numbers"), ("5,0", "above the smallest")):
        again = [*arguments[:-6], "--label-range", wrong, "-o", folder / "n"]
        assert run([str(argument) for argument in again]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("first", ["inf", "8"])
def test_a_run_on_public_text_does_not_wash_the_weights_it_starts_from(folder, first):
    shared = ["--batch", 100, "--epochs", 1, "-q", "--strategy", "full"]
    data = folder / "data.csv"
    chain = [
        ["train", "classify", data, "--model", folder / "tiny", "--epsilon", first, "-o", folder / "first", *shared],
        ["train", "classify", data, "--model", folder / "first", "--public", "x", "-o", folder / "washed", *shared],
        ["train", "classify", data, "--model", folder / "washed", "--epsilon", 8, "-o", folder / "final", *shared],
    ]
    for arguments in chain:
        assert run([str(argument) for argument in arguments]) == 0
    assert "public" not in json.loads((folder / "washed" / "task.json").read_text())
    card = json.loads((folder / "final" / "card.json").read_text())["guarantee"]
    if first == "inf":
        assert card["notion"] == "none"
    else:
        assert any("both budgets" in item for item in card["not_covered"])


def test_many_trials_share_one_delta(folder):
    options = ("--epsilon", 1, "--batch", 300, "--epochs", 1, "--trials", 10, "-q")
    assert train(folder, *options, "-o", folder / "out") == 0
    card = json.loads((folder / "out" / "card.json").read_text())["guarantee"]
    assert card["delta"] < 0.1 / 300
    assert card["epsilon"] == pytest.approx(10, rel=1e-3)
