"""The table of docs/training-models.md in part: architectures as they are checked before a run, and what breaks."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError  # noqa: E402
from tacit.training.gradients import UnsupportedModelError, check, choose  # noqa: E402
from tacit.training.layout import choose_layout  # noqa: E402
from tacit.training.models import load_model  # noqa: E402
from tacit.training.tasks import CausalLanguage, Classification  # noqa: E402
from tests.training.test_models import bert, saved, words_of  # noqa: E402
from tests.training.zoo import batch  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TAKEN_BY_TAPS = [
    ("Gemma", "classify"), ("Gemma 3", "write"), ("Falcon", "write"), ("Mamba", "write"), ("Mixtral", "write"),
    ("Qwen3 MoE", "tag"), ("MPNet", "classify"), ("ModernBERT", "classify"), ("BART", "answer"), ("T5", "translate"),
]  # fmt: skip


@pytest.fixture(scope="module")
def page():
    place = importlib.util.spec_from_file_location("architecture_page", ROOT / ".ci" / "architecture_page.py")
    made = importlib.util.module_from_spec(place)
    place.loader.exec_module(made)
    return made


@pytest.mark.parametrize(("family", "task_name"), TAKEN_BY_TAPS)
def test_taps_take_the_model_and_are_exact_for_other_batches_than_the_probes(page, family, task_name):
    model, task = page.tiny(family, task_name)
    words = page.words()
    choose_layout(task, model, words)
    engine, checked = choose(model, task.loss, task.probes(words))
    assert engine.name == "taps", checked.refused
    from tacit.noise.source import public_generator

    generator = public_generator(3)
    for size in (2, 7):
        examples = [task.probe(generator, words) for _ in range(size)]
        later = check(engine, model, task.loss, [task.collate(examples, words)])
        assert max(later.norm_deviation, later.sum_deviation) < 1e-6, later


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # DeBERTa is scripted
def test_every_architecture_of_the_table_has_a_row_and_can_be_made(page):
    text = page.PAGE.read_text(encoding="utf-8")
    for family in page.FAMILIES:
        assert text.count(f"| {family} |") == len(page.STRATEGIES)
        assert any(page.tiny(family, task) is not None for task in ("classify", "write", "translate"))


class Shifted(torch.nn.Module):
    """A weight of which something is made before it is used."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(97, 12)
        self.scale = torch.nn.Parameter(torch.randn(12) * 0.3)
        self.matrix = torch.nn.Parameter(torch.randn(12, 12) * 0.3)
        self.kind = kind

    def forward(self, ids):
        state = self.words(ids)
        if self.kind == "known":
            state = state * (1.0 + -torch.exp(2.0 * self.scale.float()))[None, None, :]
            state = state @ self.matrix.T
        if self.kind == "unknown use":
            state = state + torch.sin(1.0 + self.scale)
        if self.kind == "unknown operation":
            state = state * torch.softmax(1.0 + self.scale, -1)
        if self.kind == "both":
            state = torch.tanh(state @ self.matrix) + self.matrix[None, :1] + (1.0 * self.matrix)[None, :11]
        return state.mean(1)[:, :3]


def shifted_loss(model, examples):
    return torch.nn.functional.cross_entropy(model(examples["input_ids"]), examples["labels"], reduction="none")


PROBES = [batch(3), batch(5, seed=3)]


def test_what_was_made_of_a_weight_is_led_back_to_it():
    torch.manual_seed(0)
    model = Shifted("known")
    engine, checked = choose(model, shifted_loss, PROBES)
    assert engine.name == "taps", checked.refused
    assert checked.deviation < 1e-6


@pytest.mark.parametrize("kind", ["unknown use", "unknown operation", "both"])
def test_a_use_of_what_was_made_of_a_weight_that_is_not_known_stops_taps(kind):
    torch.manual_seed(0)
    model = Shifted(kind)
    with pytest.raises(UnsupportedModelError, match=r"scale|matrix"):
        choose(model, shifted_loss, PROBES, "taps")
    assert choose(model, shifted_loss, PROBES)[0].name in ("vmap", "loop")


def test_a_tokenizer_that_fills_up_on_the_left_or_has_no_padding_token(page, tmp_path):
    words = page.words()
    for side in ("left", "right"):
        words.padding_side = side
        words.pad_token = None
        model, _ = page.tiny("Llama", "write")
        words.save_pretrained(tmp_path / side)
        model.save_pretrained(tmp_path / side)
        for task in (CausalLanguage(length=16), Classification(length=16, labels=["a", "b"])):
            made, loaded = load_model(task, str(tmp_path / side))
            assert loaded.pad_token == "</s>"
            assert choose_layout(task, made, loaded) < 1e-5
            assert not task.constant


def test_a_tokenizer_with_nothing_to_fill_up_with_is_refused(tmp_path):
    folder = saved(tmp_path, bert)
    words = words_of(ended=False)
    words.pad_token = words.eos_token = words.unk_token = None
    words.save_pretrained(folder)
    with pytest.raises(BadInputError, match="no token to fill texts up"):
        load_model(Classification(length=12, labels=["a", "b"]), folder)


def test_a_quantized_checkpoint_and_one_with_broken_weights_are_refused(tmp_path):
    folder = saved(tmp_path, bert)
    settings = Path(folder) / "config.json"
    plain = settings.read_text(encoding="utf-8")
    settings.write_text(json.dumps({**json.loads(plain), "quantization_config": {"quant_method": "gptq", "bits": 4}}))
    task = Classification(length=12, labels=["a", "b"])
    with pytest.raises(BadInputError, match=r"quantized \(gptq\)"):
        load_model(task, folder)
    settings.write_text(plain)
    model = bert()
    with torch.no_grad():
        model.bert.encoder.layer[1].output.dense.weight[0, 0] = float("nan")
    model.save_pretrained(folder)
    with pytest.raises(BadInputError, match=r"output\.dense\.weight"):
        load_model(task, folder)


def test_labels_beyond_the_list_are_refused_before_anything_is_trained():
    with pytest.raises(BadInputError, match="not in the given list"):
        Classification(length=12, labels=["a", "b"]).learn([{"text": "x", "label": "c"}])
