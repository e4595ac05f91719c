"""Noise from the generator of a device, tried with that of the processor, and the number of records at a time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.jobs.train import TrainClassify  # noqa: E402
from tacit.noise.source import StreamKey  # noqa: E402
from tacit.training.device_noise import add_device_noise  # noqa: E402
from tacit.training.physical import bytes_per_position, fitting, largest_power  # noqa: E402
from tests.training.test_run import make_run, tokenizer  # noqa: E402, F401
from tests.training.zoo import MODELS, batch  # noqa: E402

DEVICE = {"settings": {"noise_generator": "device"}}


def test_a_step_has_the_same_noise_again_and_another_step_another_one():
    key = StreamKey.from_test_seed(1)

    def noise(step: int, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
        sums = {"a": torch.zeros(100, 30), "b": torch.zeros(3000)}
        add_device_noise(sums, scale, step, key)
        return sums["a"], sums["b"]

    again = noise(4)
    for first, second in zip(noise(4), again, strict=True):
        assert torch.equal(first, second)
    for different in (noise(5)[0], noise(4)[1].view(100, 30)):
        assert abs(float(torch.corrcoef(torch.stack([different.flatten(), again[0].flatten()]))[0, 1])) < 0.1
    # The standard deviation of 6,000 numbers is within 5 % of its mean but for one in 10 million.
    assert float(torch.cat([value.flatten() for value in noise(6, 3.0)]).std()) == pytest.approx(3.0, rel=0.05)


def test_the_card_names_the_generator_and_what_is_assumed(tokenizer, tmp_path):  # noqa: F811
    usual = make_run(tokenizer, tmp_path / "usual", seed=1, steps=2)
    run = make_run(tokenizer, tmp_path / "device", seed=1, steps=2, **DEVICE)
    promised = run.promise()
    assert any("not a cryptographic one" in line for line in promised.assumptions)
    assert any("not a cryptographic one" in line for line in run.charged().assumptions)
    assert promised.parameters["generator of the noise"] == "that of the graphics card, by request"
    assert not any("cryptographic" in line for line in usual.promise().assumptions)
    assert promised.epsilon == usual.promise().epsilon


def test_on_the_processor_a_secret_key_is_refused(tokenizer, tmp_path):  # noqa: F811
    run = make_run(tokenizer, tmp_path / "secret", steps=2, **DEVICE)
    with pytest.raises(BadParameterError, match="on the processor its seed could be guessed"):
        run.run()
    assert not (tmp_path / "secret").exists()


def test_a_run_goes_on_with_the_generator_it_had(tokenizer, tmp_path):  # noqa: F811
    def started(name: str, **more: object):
        return make_run(tokenizer, tmp_path / name, seed=1, steps=7, **(more or DEVICE))

    whole = started("whole")
    whole.run()
    stopped = started("stopped")

    def stop(now: object) -> None:
        if now.step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.run(stop)
    with pytest.raises(BadInputError, match="another generator of the noise"):
        started("stopped", settings={}).run(resume=True)
    resumed = started("stopped")
    resumed.run(resume=True)
    for first, second in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(first, second)


# How many records at a time ------------------------------------------------------------------------------------------


def test_as_many_records_as_memory_allows(monkeypatch):
    make, loss = MODELS["bert"]
    model, probes = make().eval(), [batch(3), batch(5)]
    each = bytes_per_position(model, loss, probes)
    assert each > 0
    free = {"bytes": 0.0}
    monkeypatch.setattr("tacit.training.physical.free_memory", lambda device: free["bytes"])
    counts = []
    for free["bytes"] in (0.0, 3.0 * each * 10 * 9, 3.0 * each * 10 * 1000):
        counts.append(fitting(model, loss, probes, 10, 256))
    assert counts == [1, 8, 32], "one at least, a power of two, and no more than help a processor"
    assert fitting(model, loss, probes, 10, 6) == 4, "not more than a step has"
    assert largest_power(33.5) == 32


def test_a_longer_record_takes_more_memory():
    make, loss = MODELS["bert"]
    model = make().eval()
    short, long = (bytes_per_position(model, loss, [batch(3), batch(size)]) for size in (5, 9))
    assert 0.5 < short / long < 2.0, "it is counted for a position, whatever the batches are"


def test_auto_is_a_number_of_records(tokenizer, tmp_path):  # noqa: F811
    given = {"data": "x.csv", "output": "o", "epsilon": 3}
    assert TrainClassify(**given, physical="auto").physical == 0
    assert TrainClassify(**given, physical="8").physical == 8
    for bad in (-1, "many", 0.5):
        with pytest.raises(BadParameterError, match="at least 1 or 'auto'"):
            TrainClassify(**given, physical=bad)
    automatic = make_run(tokenizer, tmp_path / "auto", seed=1, steps=2, settings={"physical": 0})
    automatic.run()
    usual = make_run(tokenizer, tmp_path / "usual", seed=1, steps=2)
    usual.run()
    for first, second in zip(automatic.model.parameters(), usual.model.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-5)
