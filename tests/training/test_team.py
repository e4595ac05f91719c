"""Two processes train the same model as one."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training import step as step_module  # noqa: E402
from tacit.training.banded import BandedPlan, banded_factor  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import TrainingSettings  # noqa: E402
from tacit.training.sharding import OwnPart, check_shardable  # noqa: E402
from tacit.training.step import add_noise  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.team import Team  # noqa: E402
from tacit.training.user_plans import UserPlan  # noqa: E402
from tacit.training.user_rows import UserRows  # noqa: E402
from tacit.training.users import group_by_user  # noqa: E402
from tests.training.test_run import make_run, tiny, tokenizer  # noqa: E402, F401

WHOLE = {"quantile": "full", "users": "bias", "bf16": "full"}
"""The strategies of runs in which each of two processes holds the whole model."""
SHARDED = {
    "full": "full", "lora": "lora", "sharded quantile": "full", "sharded banded": "lora", "sharded again": "full",
    "sharded bf16": "full", "sharded bf16 again": "lora",
}  # fmt: skip
"""The strategies of runs in which each holds a part of it."""


def run_of(kind, words, folder, team=None, *, shard=False):
    """A run of six steps without dropout, which differs from process to process."""
    strategy = {**WHOLE, **SHARDED}[kind]
    clipping = "quantile" if "quantile" in kind else "flat"
    settings = {"strategy": strategy, "average": 0.5, "clipping": clipping, "physical": 100}
    settings["gradient_checkpointing"] = "again" in kind
    settings["precision"] = "bf16" if "bf16" in kind else "float32"
    if kind == "bf16":  # the first process could take more rows at a time
        settings["physical"] = 32 if team is not None and team.first else 8
    run = make_run(words, folder, seed=1, steps=6, team=team or Team(), settings=settings)
    if kind == "sharded banded":
        run.plan = BandedPlan(1000, 200, 6, 5.0, 4e-4, factor=banded_factor(6, 3))
    if kind == "users":
        run.plan = UserPlan(250, 50, 6, 5.0, 4e-4, group=3, examples=750)
        run.user_rows = UserRows(group_by_user([f"user {number // 4}" for number in range(1000)]), 3)
    if kind in SHARDED:
        run.model = tiny(words, run.task, layers=2)
    run.model, run.shard = without_dropout_for(run.model, strategy), shard
    return run


class StoppedError(Exception):
    pass


def stopped(run):
    """The run, stopped in its last step, after its last checkpoint."""
    made_by = run._step

    def stopping():
        made = made_by()
        whole = made.run

        def stepped(number, key):
            if number == 5:
                raise StoppedError
            return whole(number, key)

        made.run = stepped
        return made

    run._step = stopping
    with contextlib.suppress(StoppedError):
        run.run()


PROGRAM = """
import json
import sys
from collections import Counter
from pathlib import Path
import torch
import transformers
sys.path.insert(0, {root!r})
from transformers.models.bert.modeling_bert import BertLayer
from tests.training.test_team import SHARDED, WHOLE, run_of, stopped
from tacit.training.sharding import own_rows
from tacit.training.team import Team

torch.set_num_threads(1)
folder = Path({folder!r})
words = transformers.PreTrainedTokenizerFast.from_pretrained(folder / "words")
team = Team.from_environment()


passes, forward = Counter(), BertLayer.forward


def counted(layer, *args, **more):
    passes["layer"] += 1
    return forward(layer, *args, **more)


BertLayer.forward = counted


def keep(run, name):
    if team.first:
        torch.save({{n: p.detach() for n, p in run.model.named_parameters()}}, folder / f"{{name}}.pt")


for kind in WHOLE:
    run = run_of(kind, words, folder / kind, team)
    held = {{}}
    def sized(made_by=run._step):
        made = made_by()
        held["physical"] = made.physical
        return made
    run._step = sized
    run.run()
    (folder / f"{{kind}}-{{team.rank}}.json").write_text(json.dumps(held))
    keep(run, kind)
for kind in SHARDED:
    run = run_of(kind, words, folder / kind, team, shard=True)
    made_by = run._step
    held, passes = {{}}, Counter()
    def seen():
        made = made_by()
        passes.clear()
        whole = made.run
        def stepped(number, key):
            facts = whole(number, key)
            parameters = list(made.engine.parameters.values())
            held["all"] = sum(p.numel() for p in run.model.parameters())
            held["own"] = sum(own_rows(p).numel() for p in run.model.parameters())
            held["gradients"] = sum(own_rows(p.grad).numel() for p in parameters)
            held["trained"] = sum(p.numel() for p in parameters)
            held["passes"] = passes.total()
            return facts
        made.run = stepped
        return made
    run._step = seen
    run.run()
    (folder / f"{{kind}}-{{team.rank}}.json").write_text(json.dumps(held))
    keep(run, kind)
for kind in ("full", "sharded banded"):
    stopped(run_of(kind, words, folder / f"{{kind}}, by two", team, shard=True))
    run = run_of(kind, words, folder / f"{{kind}}, by one", team, shard=True)
    run.run(resume=True)
    keep(run, f"{{kind}}, by two after one")
run = run_of("full", words, folder / "full, by two", team, shard=True)
run.run(resume=True)
keep(run, "full, by two after two")
team.leave()
"""


def without_dropout_for(model, strategy):
    torch.manual_seed(0)
    model = apply_strategy(model, strategy, rank=2)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


@pytest.fixture(scope="module")
def together(tokenizer, tmp_path_factory):  # noqa: F811
    """The folder of models that two processes have trained, some of them from where one process had stopped."""
    folder = tmp_path_factory.mktemp("together")
    tokenizer.save_pretrained(folder / "words")
    for kind in ("full", "sharded banded"):
        stopped(run_of(kind, tokenizer, folder / f"{kind}, by one"))
    program = folder / "train.py"
    root = Path(__file__).resolve().parents[2]
    program.write_text(PROGRAM.format(root=str(root), folder=str(folder)), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def alone(tokenizer, tmp_path_factory):  # noqa: F811
    """The folder of the same models, each trained by one process that holds all of it."""
    folder = tmp_path_factory.mktemp("alone")
    for kind in (*WHOLE, *SHARDED):
        run = run_of(kind, tokenizer, folder / kind)
        run.run()
        torch.save({name: value.detach() for name, value in run.model.named_parameters()}, folder / f"{kind}.pt")
    return folder


def test_layers_of_sharded_runs_were_computed_again_and_with_16_bits(together):
    """Otherwise the comparisons show nothing: twice as many passes, and weights that are off by bits that are cut."""
    passes = {kind: json.loads((together / f"{kind}-0.json").read_text())["passes"] for kind in SHARDED}
    assert passes["sharded again"] - passes["full"] > 0.9 * passes["full"] / 2
    exact, rounded = weights(together / "full.pt"), weights(together / "sharded bf16.pt")
    assert 1e-5 < max(float((rounded[name] - value).abs().max()) for name, value in exact.items()) < 0.1


def weights(place):
    return torch.load(place, weights_only=True)


@pytest.mark.parametrize("kind", WHOLE)
def test_two_processes_train_the_model_of_one(kind, together, alone):
    expected, made = (weights(folder / f"{kind}.pt") for folder in (alone, together))
    assert expected.keys() == made.keys()
    for name, value in expected.items():
        torch.testing.assert_close(made[name], value, rtol=1e-3, atol=1e-5, msg=name)
    logs = [(folder / f"{kind}.private" / "log.csv").read_text().splitlines() for folder in (alone, together)]
    assert len(logs[0]) == len(logs[1]) == 7, "only the first process writes, and it knows the examples of all"
    assert [line.split(",")[2] for line in logs[0]] == [line.split(",")[2] for line in logs[1]]


def test_processes_agree_on_the_shape_of_a_record_with_16_bits(together):
    """Which process works on a record depends on the other records, so its gradient must not depend on the process."""
    held = [json.loads((together / f"bf16-{rank}.json").read_text()) for rank in (0, 1)]
    assert [each["physical"] for each in held] == [8, 8]


@pytest.mark.parametrize("kind", SHARDED)
def test_a_model_in_parts_learns_what_a_whole_one_does(kind, together, alone):
    expected, made = (weights(folder / f"{kind}.pt") for folder in (alone, together))
    assert expected.keys() == made.keys()
    for name, value in expected.items():
        torch.testing.assert_close(made[name], value, rtol=0.0, atol=1e-6, msg=name)
    kinds = [json.loads((folder / kind / "config.json").read_text()) for folder in (alone, together)]
    assert kinds[0]["architectures"] == kinds[1]["architectures"]
    whole, saved = (
        transformers.AutoModelForSequenceClassification.from_pretrained(folder / kind) for folder in (alone, together)
    )
    for a, b in zip(whole.parameters(), saved.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(
    "resumed", ["full, by two after two", "full, by two after one", "sharded banded, by two after one"]
)
def test_a_stopped_run_goes_on_in_two_processes(resumed, together, alone):
    for name, value in weights(alone / f"{resumed.split(',')[0]}.pt").items():
        torch.testing.assert_close(weights(together / f"{resumed}.pt")[name], value, rtol=0.0, atol=1e-6, msg=name)


def test_one_process_goes_on_with_the_run_of_two(together, alone, tokenizer):  # noqa: F811
    """With the moments of the optimizer, the averaged weights and the noise of earlier steps, which lay in parts."""
    run = run_of("sharded banded", tokenizer, together / "sharded banded, by two")
    run.run(resume=True)
    expected = weights(alone / "sharded banded.pt")
    for name, value in run.model.named_parameters():
        torch.testing.assert_close(value.detach(), expected[name], rtol=0.0, atol=1e-6, msg=name)


@pytest.mark.parametrize("strategy", ["full", "lora"])
def test_each_process_holds_its_part_and_no_more(strategy, together):
    held = [json.loads((together / f"{strategy}-{rank}.json").read_text()) for rank in (0, 1)]
    for kind, total in (("own", "all"), ("gradients", "trained")):
        assert sum(process[kind] for process in held) == held[0][total]
        assert all(0.3 < process[kind] / process[total] < 0.7 for process in held), held


def test_the_noise_of_parts_is_that_of_the_whole():
    sums = {"a": torch.zeros(7, 3), "b": torch.zeros(5)}
    key = StreamKey.from_test_seed(3)
    add_noise(sums, 2.0, key.stream(0, b"noise"))
    for rank in (0, 1):
        own, parts = {}, {}
        for name, value in sums.items():
            rows, width = {"a": (4, 3), "b": (3, 1)}[name]
            own[name] = torch.zeros_like(value[rank * rows : (rank + 1) * rows])
            parts[name] = OwnPart(rank * rows * width, value.numel())
        add_noise(own, 2.0, key.stream(0, b"noise"), parts)
        for name, rows in (("a", 4), ("b", 3)):
            assert torch.equal(own[name], sums[name][rank * rows : (rank + 1) * rows])


def test_noise_in_pieces_is_the_same_for_parts(monkeypatch):
    monkeypatch.setattr(step_module, "NOISE_AT_ONCE", 4)
    key = StreamKey.from_test_seed(3)
    whole, own = torch.zeros(11, 2), torch.zeros(3, 2)
    add_noise({"a": whole}, 1.0, key.stream(0, b"noise"))
    add_noise({"a": own}, 1.0, key.stream(0, b"noise"), {"a": OwnPart(8, 22)})
    assert torch.equal(own, whole[4:7])


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({}, "nobody-to-share-with"),
        ({"strategy": "bias"}, "not-sharded"),
        ({"public_gradients": "blend"}, "not-sharded"),
    ],
)
def test_what_is_not_sharded_is_refused_before_any_work(settings, code):
    team = Team(0, 1) if code == "nobody-to-share-with" else Team(0, 2)
    with pytest.raises(BadInputError) as caught:
        check_shardable(TrainingSettings(**settings), TrainingPlan(100, 10, 2, 1.0, 1e-3), team)
    assert caught.value.code == code


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
