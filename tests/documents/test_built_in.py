"""Models by name: in a checkout all of them, in an installed package those that mechanisms take by themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tacit.documents.autoencoders import built_in
from tacit.documents.autoencoders.built_in import REPOSITORY_MODELS, built_in_folder, built_in_models, found_models
from tacit.documents.latent_narrow import HIGH, LOW
from tacit.errors import BadInputError


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose package does not lie in a checkout; returns an empty folder to work in."""
    monkeypatch.setattr(built_in, "CHECKOUT", tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_checkout_finds_all_models() -> None:
    assert set(REPOSITORY_MODELS) < set(built_in_models())
    assert found_models("bart-20", "bart-40", "bart-80") == ("bart-20", "bart-40")


def test_a_package_carries_what_mechanisms_take_by_themselves(installed: Path) -> None:
    assert built_in_models() == ["adept-20", "bart-20", HIGH, LOW]
    assert found_models("bart-20", "bart-20-unclipped", "bart-40") == ("bart-20",)
    assert built_in_folder("facebook/bart-base") is None


@pytest.mark.parametrize("name", REPOSITORY_MODELS)
def test_a_model_of_the_repository_is_an_error_that_names_its_place(installed: Path, name: str) -> None:
    with pytest.raises(BadInputError) as raised:
        built_in_folder(name)
    assert raised.value.code == "model-in-repository"
    assert f"experiments/models/{name}" in str(raised.value)


def test_a_copied_folder_of_the_repository_is_a_model(installed: Path) -> None:
    pytest.importorskip("torch", reason="models need: pip install 'tacit-dp[documents]'")
    from tacit.documents.autoencoders.base import load_autoencoder

    source = Path(__file__).parents[2] / "experiments" / "models" / "adept-20-wide"
    shutil.copytree(source, installed / "adept-20-wide")
    assert built_in_folder("adept-20-wide") is None
    for given in ("adept-20-wide", installed / "adept-20-wide"):
        assert load_autoencoder(given).kind == "adept"
