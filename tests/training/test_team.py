"""Two processes train the same model as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.training.test_run import make_run, tokenizer  # noqa: E402, F401

PROGRAM = """
import sys
from pathlib import Path
import torch
import transformers
sys.path.insert(0, {root!r})
from tests.training.test_run import make_run
from tacit.training.team import Team

torch.set_num_threads(1)
words = transformers.PreTrainedTokenizerFast.from_pretrained({words!r})
team = Team.from_environment()
run = make_run(words, Path({folder!r}), seed=1, steps=6, team=team, settings={{"clipping": "quantile"}})
# Dropout differs from process to process.
for module in run.model.modules():
    if isinstance(module, torch.nn.Dropout):
        module.p = 0.0
run.run()
team.leave()
"""


def test_two_processes_train_the_model_of_one(tokenizer, tmp_path):  # noqa: F811
    tokenizer.save_pretrained(tmp_path / "words")
    root = Path(__file__).resolve().parents[2]
    program = tmp_path / "train.py"
    program.write_text(
        PROGRAM.format(root=str(root), words=str(tmp_path / "words"), folder=str(tmp_path / "two")), encoding="utf-8"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    alone = make_run(tokenizer, tmp_path / "one", seed=1, steps=6, settings={"clipping": "quantile"})
    for module in alone.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    alone.run()
    two = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "two")
    for a, b in zip(alone.model.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    logs = [(tmp_path / name / "private" / "log.csv").read_text().splitlines() for name in ("one", "two")]
    assert len(logs[0]) == len(logs[1]) == 7, "only the first process writes, and it knows the examples of all"
    assert [line.split(",")[2] for line in logs[0]] == [line.split(",")[2] for line in logs[1]]
