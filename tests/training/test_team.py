"""Two processes train the same model as one."""

from __future__ import annotations

import os
import socket
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
    logs = [(tmp_path / f"{name}.private" / "log.csv").read_text().splitlines() for name in ("one", "two")]
    assert len(logs[0]) == len(logs[1]) == 7, "only the first process writes, and it knows the examples of all"
    assert [line.split(",")[2] for line in logs[0]] == [line.split(",")[2] for line in logs[1]]


DYING = """
import os
import sys
from pathlib import Path
import torch
import transformers
sys.path.insert(0, {root!r})
from tests.training.test_run import make_run
from tacit.errors import TacitError
from tacit.training.team import Team

torch.set_num_threads(1)
words = transformers.PreTrainedTokenizerFast.from_pretrained({words!r})
other = os.fork()  # the libraries are imported once for both
os.environ["RANK"] = os.environ["LOCAL_RANK"] = "0" if other else "1"
team = Team.from_environment()
run = make_run(words, Path({folder!r}), seed=1, steps=7, team=team)
step = run._step
if team.rank == 1:
    def dying():
        made = step()
        whole = made.run
        made.run = lambda number, key: os._exit(9) if number == 6 else whole(number, key)
        return made
    run._step = dying
try:
    run.run()
except TacitError as error:
    _, status = os.waitpid(other, 0)
    Path({said!r}).write_text(f"{{error.code}} {{os.waitstatus_to_exitcode(status)}}")
    raise SystemExit(1)
"""


def test_a_process_that_dies_is_named_and_the_run_goes_on_from_its_checkpoint(tokenizer, tmp_path):  # noqa: F811
    tokenizer.save_pretrained(tmp_path / "words")
    program = tmp_path / "train.py"
    said = tmp_path / "said"
    program.write_text(
        DYING.format(
            root=str(Path(__file__).resolve().parents[2]), words=str(tmp_path / "words"),
            folder=str(tmp_path / "two"), said=str(said),
        ),
        encoding="utf-8",
    )  # fmt: skip
    # Without torchrun, which would end the first process before it can say anything.
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(free_port())}  # fmt: skip
    assert subprocess.run([sys.executable, str(program)], env=shared, timeout=240, check=False).returncode == 1
    assert said.read_text() == "worker-lost 9"
    resumed = make_run(tokenizer, tmp_path / "two", seed=1, steps=7)
    resumed.run(resume=True)
    lines = (tmp_path / "two.private" / "log.csv").read_text().splitlines()
    assert len(lines) == 8, "the steps after the last checkpoint are repeated, and none is missing"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
