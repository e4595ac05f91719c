"""Checkpoints as people have them: saved in 16 bits, encoder-decoders, models that read less than they are asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.errors import BadInputError  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.layout import choose_layout  # noqa: E402
from tacit.training.models import load_model, longest_input  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.prediction import load_trained, predict_rows  # noqa: E402
from tacit.training.run import TrainingRun, TrainingSettings  # noqa: E402
from tacit.training.strategies import apply_strategy  # noqa: E402
from tacit.training.tasks import Classification, Regression  # noqa: E402

WORDS = ["<s>", "<pad>", "</s>", "<unk>", "good", "bad", "film", "the", "a"]
ROWS = [
    {"text": "good film", "label": "pos"},
    {"text": "bad film </s> the film </s>", "label": "neg"},
    {"text": "</s>", "label": "neg"},
    {"text": "", "label": "pos"},
    {"text": "the good good film a a a the the bad film good good film", "label": "pos"},
]


def words_of(*, ended: bool):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if ended:
        made.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def bart():
    return transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            vocab_size=len(WORDS), d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=40,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
        )
    )  # fmt: skip


def t5():
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=len(WORDS), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=1,
            decoder_start_token_id=1, eos_token_id=2,
        )
    )  # fmt: skip


def saved(tmp_path, model, *, ended=True, dtype=None):
    torch.manual_seed(0)
    folder = tmp_path / "base"
    made = model()
    if dtype is not None:
        made = made.to(dtype)
    made.save_pretrained(folder)
    words_of(ended=ended).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("ended", [True, False], ids=["tokenizer ends texts", "it does not"])
@pytest.mark.parametrize("kind", [bart, t5], ids=["bart", "t5"])
@pytest.mark.parametrize("strategy", ["full", "bias", "lora"])
def test_c3_encoder_decoders_learn_to_label_texts(kind, strategy, ended, tmp_path):
    """Texts with none, one or several end marks of their own; embeddings shared by both halves."""
    if strategy == "lora":
        pytest.importorskip("peft")
    task = Classification(length=12, labels=["neg", "pos"])
    model, words = load_model(task, saved(tmp_path, kind, ended=ended))
    model = apply_strategy(model, strategy)
    assert task.ending == 2
    encoded = [task.encode(row, words, train=True) for row in ROWS]
    assert {record["input_ids"].count(2) for record in encoded} == {1}
    assert all(record["input_ids"][-1] == 2 and len(record["input_ids"]) <= 12 for record in encoded)
    data = ROWS * 8
    plan = TrainingPlan(len(data), 10, 2, 1.0, 1e-3)
    run = TrainingRun(task, model, words, data, plan, TrainingSettings(model="x", strategy=strategy), tmp_path / "m")
    run.run()
    assert run.checked is not None
    assert run.checked.deviation < 1e-5
    again, network, tokenizer = load_trained(tmp_path / "m")
    assert set(predict_rows(again, network, tokenizer, ROWS)) <= {"neg", "pos"}


@pytest.mark.parametrize("kind", [bart, t5], ids=["bart", "t5"])
def test_c3_pairs_have_as_many_end_marks_as_the_tokenizer_gives_them(kind, tmp_path):
    task = Regression(length=16)
    model, words = load_model(task, saved(tmp_path, kind))
    rows = [
        {"text": "good film", "pair": "the film", "label": "1"},
        {"text": "good </s> film </s>", "pair": "</s>", "label": "-1"},
    ]
    encoded = [task.encode(row, words, train=True) for row in rows]
    assert {record["input_ids"].count(2) for record in encoded} == {3}
    choose_layout(task, model, words)
    engine, _ = choose(model, task.loss, task.probes(words))
    assert bool(torch.isfinite(engine.run(task.collate(encoded, words)).losses).all())


def test_c3_an_end_mark_that_is_also_the_filling_is_refused(tmp_path):
    folder = saved(tmp_path, t5)
    words = words_of(ended=True)
    words.pad_token = "</s>"
    words.save_pretrained(folder)
    with pytest.raises(BadInputError, match="end mark"):
        load_model(Classification(length=12, labels=["a", "b"]), folder)


def bert():
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=24, pad_token_id=1,
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("pooling", ["own", "mean"])
@pytest.mark.parametrize("strategy", ["full", "last-1", "all-layers", "frozen-lstm"])
def test_c3_checkpoints_in_sixteen_bits_are_trained_in_single_precision(strategy, pooling, dtype, tmp_path):
    folder = saved(tmp_path, bert, dtype=dtype)
    assert json.loads((tmp_path / "base" / "config.json").read_text())["dtype"] in ("bfloat16", "float16")
    task = Classification(length=12, labels=["neg", "pos"])
    if pooling == "mean" and strategy == "frozen-lstm":
        pytest.skip("an LSTM reads every position")
    model, words = load_model(task, folder, pooling=pooling)
    model = apply_strategy(model, strategy)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    data = ROWS * 4
    run = TrainingRun(
        task, model, words, data, TrainingPlan(20, 5, 2, 1.0, 1e-3), TrainingSettings(model="x"), tmp_path / "m"
    )
    run.run()
    _, network, _ = load_trained(tmp_path / "m")
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}


def test_c3_a_length_beyond_the_last_position_is_cut_and_said(tmp_path):
    warned = []
    task = Classification(length=64, labels=["a", "b"])
    load_model(task, saved(tmp_path, bert), warn=warned.append)
    assert task.length == 24
    assert "reads at most 24 word pieces" in warned[0]
    assert longest_input(transformers.RobertaConfig(max_position_embeddings=514, pad_token_id=1)) == 512
    assert longest_input(transformers.T5Config()) is None
    assert longest_input(transformers.XLNetConfig()) is None
    assert longest_input(transformers.GPT2Config(n_positions=77)) == 77


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda value: (value * 127).round().to(torch.int8), "weights-are-whole-numbers"),
        (lambda value: value.to(torch.float8_e4m3fn), None),
        (None, "unreadable-model"),
    ],
)
def test_checkpoints_of_odd_types_are_read_or_refused_in_a_sentence(change, code, tmp_path):
    from safetensors.torch import load_file, save_file

    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    words_of(ended=True).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    if change is None:  # a type that there is not
        content = file.read_bytes()
        file.write_bytes(content.replace(b'"F32"', b'"X32"'))
    else:
        save_file({name: change(value) for name, value in load_file(file).items()}, file, {"format": "pt"})
    task = Classification(length=8)
    task.learn(ROWS)
    if code is None:
        model, _ = load_model(task, str(tmp_path))
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
        return
    with pytest.raises(BadInputError) as caught:
        load_model(task, str(tmp_path))
    assert caught.value.code == code


@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
def test_a_configuration_that_names_no_type_of_numbers_is_refused_in_a_sentence(key, tmp_path):
    folder = saved(tmp_path, bert)
    settings = Path(folder) / "config.json"
    plain = {k: v for k, v in json.loads(settings.read_text(encoding="utf-8")).items() if "dtype" not in k}
    task = Classification(length=8)
    task.learn(ROWS)
    for kind in ("float7", "nn"):
        settings.write_text(json.dumps({**plain, key: kind}), encoding="utf-8")
        with pytest.raises(BadInputError, match=f"'{kind}', which PyTorch") as caught:
            load_model(task, folder)
        assert caught.value.code == "unknown-weight-type"
    settings.write_text(json.dumps({**plain, key: "bfloat16"}), encoding="utf-8")
    assert load_model(task, folder)[0].dtype == torch.float32
