"""A copy of what may leave of a model folder, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.card import Card
from tacit.cli.main import run
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.guarantee import Guarantee, VoidReason
from tacit.jobs.vocabulary import build
from tacit.training.graphs.messages import NodePlan, node_guarantee
from tacit.training.sharing import share_folder


@pytest.fixture
def promised() -> Guarantee:
    return node_guarantee(NodePlan.calibrated(epsilon=1.0, nodes=100, delta=1e-4, links=0), secure=True)


@pytest.fixture
def folder(tmp_path: Path, promised: Guarantee) -> Path:
    """A finished model with its private folder, as a training leaves them."""
    place = tmp_path / "model"
    place.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "task.json", "LICENSE"):
        (place / name).write_text("{}")
    (place / "card.json").write_text(Card(promised).to_json())
    (tmp_path / "model.private").mkdir()
    (tmp_path / "model.private" / "log.csv").write_text("step,loss\n1,0.693\n")
    return place


def test_only_what_may_leave_is_copied(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "private").mkdir()  # of an earlier version
    (folder / "private" / "log.csv").write_text("step,loss\n1,0.693\n")
    assert run(["card", str(folder), "--share", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "left out: private" in said.err
    assert "Privacy card" in said.out
    names = {path.name for path in (tmp_path / "out").rglob("*")}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "task.json", "LICENSE", "card.json",
                     "card.md"}  # fmt: skip
    assert "0.693" not in "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    with pytest.raises(BadInputError):
        share_folder(folder, tmp_path / "out")


@pytest.mark.parametrize("name", ["log.csv", "rows.csv", "checkpoint.pt", "noise.key", "notes.txt", "optimizer.bin"])
def test_a_file_that_nobody_knows_refuses_the_folder(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).write_text("a private row")
    with pytest.raises(BadInputError, match=name) as refused:
        share_folder(folder, tmp_path / "out")
    assert refused.value.code == "unknown-files"
    assert not (tmp_path / "out").exists()


def test_links_folders_and_places_inside_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="lies inside"):
        share_folder(folder, folder / "out")
    (folder / "README.md").symlink_to(tmp_path / "model.private" / "log.csv")
    with pytest.raises(BadInputError, match=r"README\.md"):
        share_folder(folder, tmp_path / "out")
    (folder / "README.md").unlink()
    (folder / "first-phase").mkdir()
    with pytest.raises(BadInputError, match="first-phase"):
        share_folder(folder, tmp_path / "out")


def test_nothing_is_shared_without_a_promise_or_before_the_end(
    folder: Path, tmp_path: Path, promised: Guarantee
) -> None:
    void = promised.voided("it was trained without noise", VoidReason.NO_NOISE)
    (folder / "card.json").write_text(Card(void).to_json())
    with pytest.raises(NoGuaranteeError, match="not to be shared"):
        share_folder(folder, tmp_path / "out")
    (folder / "card.json").unlink()
    with pytest.raises(BadInputError, match="no privacy card"):
        share_folder(folder, tmp_path / "out")
    (folder / "card.json").write_text(Card(promised).to_json())
    (tmp_path / "model.private" / "checkpoint.pt").touch()
    with pytest.raises(BadInputError, match="unfinished run"):
        share_folder(folder, tmp_path / "out")


def test_a_vocabulary_can_be_shared(tmp_path: Path) -> None:
    texts = [{"text": "a fine film"}] * 60
    build(texts, output=tmp_path / "words", epsilon=5, kind="words")
    shared = share_folder(tmp_path / "words", tmp_path / "out")
    assert shared.files == ("card.md", "vocabulary-card.json", "words.tsv")
    assert run(["card", str(tmp_path / "out"), "--json"]) == 0
    assert run(["card", str(tmp_path / "nothing")]) == 2
