"""`tacit calibrate`, end to end."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tacit.cli.calibrate import command
from tacit.errors import BadParameterError
from tests.cli.sentences import refused


def run(*arguments: str) -> str:
    called = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert called.exit_code == 0, called.output
    return called.output


def run_json(*arguments: str) -> dict[str, object]:
    return json.loads(run(*arguments, "--json"))


def test_laplace_both_ways():
    assert run_json("laplace", "--epsilon", "0.5", "--sensitivity", "2")["scale"] == 4.0
    assert run_json("laplace", "--scale", "4", "--sensitivity", "2")["epsilon"] == 0.5


def test_gaussian_both_ways():
    answer = run_json("gaussian", "--epsilon", "1", "--delta", "1e-5")
    assert answer["sigma"] == pytest.approx(3.7306, abs=5e-5)
    assert "classical_sigma" not in answer
    back = run_json("gaussian", "--sigma", str(answer["sigma"]), "--delta", "1e-5")
    assert back["epsilon"] == pytest.approx(1.0)
    assert run_json("gaussian", "--epsilon", "0.5", "--delta", "1e-5")["classical_sigma"] == pytest.approx(
        9.6896, abs=5e-5
    )


def test_response_both_ways():
    assert run_json("response", "--truth", "0.75")["epsilon"] == pytest.approx(1.0986, abs=5e-5)
    assert run_json("response", "--epsilon", "1.0986123")["truth_probability"] == pytest.approx(0.75, abs=1e-6)
    four = run_json("response", "--epsilon", "1", "--categories", "4")
    assert four["truth_probability"] + 3 * four["probability_of_each_false_answer"] == pytest.approx(1)


def test_sgd_both_ways():
    shape = ("--records", "10000", "--lot-size", "100", "--steps", "300", "--delta", "1e-5")
    answer = run_json("sgd", *shape, "--epsilon", "1")
    assert 0.99 < answer["epsilon"] <= 1
    back = run_json("sgd", *shape, "--sigma", str(answer["noise_multiplier"]))
    assert back["epsilon"] == pytest.approx(answer["epsilon"])
    assert back["adjacency"] == "add-remove"
    replaced = run_json("sgd", *shape, "--sigma", "4", "--adjacency", "replace-one")
    assert replaced["epsilon"] > run_json("sgd", *shape, "--sigma", "4")["epsilon"]


def test_sgd_defaults():
    answer = run_json("sgd", "--records", "10000", "--lot-size", "10000", "--epochs", "5", "--sigma", "20")
    assert answer["steps"] == 5
    assert answer["delta"] == pytest.approx(1e-6)


def test_tables_for_people():
    shown = run("gaussian", "--epsilon", "1", "--delta", "1e-5")
    assert "3.7306" in shown
    assert "l2 sensitivity" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("laplace",), "exactly one of --epsilon and --scale"),
        (("laplace", "--epsilon", "1", "--scale", "1"), "exactly one of"),
        (("gaussian", "--epsilon", "1", "--sigma", "1"), "exactly one of --epsilon and --sigma"),
        (("gaussian", "--epsilon", "-1"), "epsilon must be"),
        (("response",), "exactly one of --epsilon and --truth"),
        (("response", "--truth", "0.4"), "above 1/2"),
        (("sgd", "--records", "100", "--lot-size", "10", "--epsilon", "1"), "exactly one of --epochs and --steps"),
        (("sgd", "--records", "100", "--lot-size", "200", "--steps", "1", "--sigma", "1"), "lot size"),
        (
            ("sgd", "--records", "100", "--lot-size", "9", "--steps", "1", "--sigma", "1", "--delta", ".1"),
            "100 records",
        ),
    ],
)
def test_errors_are_sentences(arguments, sentence):
    with refused(BadParameterError, match=sentence):
        CliRunner().invoke(command, list(arguments), catch_exceptions=False)


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "response", "sgd"])
def test_help_gives_an_example(noise):
    shown = run(noise, "--help")
    assert f"Example: tacit calibrate {noise}" in " ".join(shown.split())


def test_importing_the_command_is_light():
    """`tacit --help` must not wait for numpy."""
    code = "import sys, tacit.cli.calibrate; print('numpy' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
