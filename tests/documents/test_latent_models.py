"""Tiny models with random weights, made here: what the tests of the latent mechanisms share."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.documents.autoencoders import vocabulary  # noqa: E402
from tacit.documents.autoencoders.bart import BartAutoencoder  # noqa: E402
from tacit.documents.autoencoders.base import Autoencoder, Record, load_autoencoder  # noqa: E402
from tacit.documents.autoencoders.built_in import built_in_models  # noqa: E402
from tacit.documents.autoencoders.lstm import LstmAutoencoder, LstmNetwork  # noqa: E402
from tacit.documents.autoencoders.narrow import NarrowAutoencoder, capacity_bits  # noqa: E402
from tacit.documents.autoencoders.vocabulary import train_vocabulary  # noqa: E402
from tacit.documents.bounds import ClipL1, ClipL2, ClipValue  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402

PUBLIC_TEXTS = [f"the {color} {animal} sees {count} birds" for color in ("red", "blue", "green", "old", "new")
                for animal in ("cat", "dog", "cow", "fox") for count in ("no", "two", "three", "many")]  # fmt: skip


def tiny(kind: str, *, layers: int = 1, **record: object) -> Autoencoder:
    torch.manual_seed(0)
    tokenizer = train_vocabulary(PUBLIC_TEXTS, 320)
    bound = (ClipValue(1.0) if kind == "bart" else ClipL2(1.0)).to_dict()
    values = {"corpora": ["sentences made for a test"], "bound": bound, "commands": ["test"], **record}
    shape = {"width": 16, "layers": layers, "heads": 2, "feed_forward": 16}
    if kind == "bart":
        return BartAutoencoder.create(tokenizer, Record(kind="bart", positions=6, **values), **shape)
    if kind == "narrow":
        described = Record(kind="narrow", positions=2, **values)
        return NarrowAutoencoder.create_narrow(tokenizer, described, length=6, latent_width=4, **shape)
    described = Record(kind="adept", positions=2, **values)
    return LstmAutoencoder.create(tokenizer, described, length=6, embedding=8, hidden=16)


class Digits:
    """A tokenizer whose pieces are their own numbers; 0 to 2 are padding, start and end."""

    def token_to_id(self, name: str) -> int:
        return [vocabulary.PADDING, vocabulary.START, vocabulary.END].index(name)

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return "".join(map(str, ids))


def test_the_beam_search_of_an_adept_with_beams_enough_finds_the_best_of_all_texts():
    pieces, length = 5, 3
    torch.manual_seed(2)
    network = LstmNetwork(pieces, 4, 6)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=1.0)
    model = LstmAutoencoder(network.eval(), Digits(), Record(kind="adept", positions=2), length)
    latents = torch.randn(4, 2, 6)
    every = {tuple(row[: row.index(2) + 1] if 2 in row else row) for row in map(list, product(range(5), repeat=3))}
    with torch.inference_mode():
        expected = [max(every, key=lambda row: mean_log(model, latent, row)) for latent in latents.unsqueeze(1)]
        searched = model.generate(latents, pieces**length)
        narrow = model.generate(latents, 2)
        greedy = model.generate(latents, 1)
    assert searched == ["".join(str(piece) for piece in row if piece != 2) for row in expected]
    assert len(set(searched)) > 1
    assert [len(text) <= length for text in narrow] == [True] * 4
    assert searched != greedy


def mean_log(model: LstmAutoencoder, latent: torch.Tensor, row: tuple[int, ...]) -> float:
    """The mean logarithm of the probabilities of the pieces of a text."""
    ids = torch.tensor([row])
    logs = model.scores(model.states(latent, ids)).log_softmax(dim=-1)[0]
    return float(logs[torch.arange(len(row)), ids[0]].mean())


def save_tiny(kind: str, folder: Path, **record: object) -> str:
    tiny(kind, **record).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("kind", ["bart", "narrow", "adept"])
def test_latents_have_one_shape_and_models_survive_saving(kind, tmp_path):
    model = tiny(kind)
    texts = ["", "cat", "the red cat sees two birds", "word " * 100_000, "\x00\ud800 \N{SNOWMAN}".replace("\ud800", "")]
    latents = model.encode(texts)
    assert latents.shape == (5, model.positions, model.width)
    assert latents.dtype == np.float32
    assert np.isfinite(latents).all()
    np.testing.assert_allclose(model.encode(texts[2:3])[0], latents[2], atol=1e-5)
    assert all(isinstance(text, str) for text in model.decode(latents, beams=2))
    assert model.decode(latents[:0]) == []
    for half, tolerance in ((False, 1e-6), (True, 1e-2)):
        model.save_pretrained(tmp_path / str(half), half=half)
        again = load_autoencoder(tmp_path / str(half))
        assert again.record == model.record
        np.testing.assert_allclose(again.encode(texts), latents, atol=tolerance)
    assert type(model).from_pretrained(tmp_path / "True").kind == kind
    np.testing.assert_allclose(model.encode(texts), latents, atol=1e-6)  # saving in 16 bits left the model as it was


@pytest.mark.parametrize("kind", ["bart", "narrow", "adept"])
def test_batched_decoding_is_decoding_one_by_one(kind):
    model = tiny(kind)
    latents = np.random.default_rng(0).standard_normal((7, model.positions, model.width))
    assert model.decode(latents, beams=3) == [model.decode(latent[np.newaxis], beams=3)[0] for latent in latents]


def test_a_wrong_kind_is_refused(tmp_path):
    folder = save_tiny("adept", tmp_path / "m")
    with pytest.raises(BadInputError, match="of the kind 'adept', and one of the kind 'bart' is needed"):
        BartAutoencoder.from_pretrained(folder)


@pytest.mark.parametrize("kind", ["bart", "narrow", "adept"])
def test_incomplete_checkpoints(kind, tmp_path):
    folder = Path(save_tiny(kind, tmp_path / "m"))
    (folder / "model.safetensors").rename(folder / "kept")
    with pytest.raises(BadInputError, match="copy the whole folder again"):
        load_autoencoder(folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(BadInputError, match="copy the whole folder again"):
        load_autoencoder(folder)
    (folder / "kept").replace(folder / "model.safetensors")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(BadInputError, match="missing or damaged"):
        load_autoencoder(folder)
    (folder / "tacit.json").write_text("{")
    with pytest.raises(BadInputError, match="damaged"):
        load_autoencoder(folder)
    (folder / "tacit.json").write_text('{"format": 99}')
    with pytest.raises(BadInputError, match="another version"):
        load_autoencoder(folder)
    with pytest.raises(BadInputError, match="holds no model"):
        load_autoencoder(tmp_path)


def test_missing_tensors_are_not_filled_with_random_numbers(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = Path(save_tiny("bart", tmp_path / "m"))
    tensors = load_file(folder / "model.safetensors")
    tensors.pop(next(name for name in tensors if "k_proj" in name))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInputError, match="lacks 1 of the weights"):
        load_autoencoder(folder)


def test_another_architecture(tmp_path):
    from transformers import T5Config

    T5Config().save_pretrained(tmp_path)
    with pytest.raises(BadInputError, match="a model of the type t5: DP-BART needs a BART"):
        load_autoencoder(tmp_path)


def test_a_hub_name_without_network(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInputError, match="Give the folder of a BART"):
        load_autoencoder("nobody/no-such-bart")


def test_a_plain_hugging_face_folder_is_enough(tmp_path):
    """A BART that Tacit has not trained: the encoder sees the mask of its own input, the latent has its shape."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = train_vocabulary(PUBLIC_TEXTS, 320)
    shape = {"width": 16, "layers": 1, "heads": 2, "feed_forward": 16}
    for name, positions in (("long", 32), ("short", 7)):
        model = BartAutoencoder.create(tokenizer, Record(kind="bart", positions=6), positions=positions, **shape)
        model.model.save_pretrained(tmp_path / name)
        PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
        ).save_pretrained(tmp_path / name)
    loaded = load_autoencoder(tmp_path / "long")
    assert loaded.record.encoder_mask
    assert loaded.encode(["cat", "the red cat"]).shape == (2, 20, 16)
    assert len(loaded.decode(loaded.encode(["cat"]), beams=2)) == 1
    with pytest.raises(BadInputError, match="reads 2 to 7 pieces, not 20"):
        load_autoencoder(tmp_path / "short")


LONG = (
    "Tom bought a new car last week. He drives it to work every day. His wife would rather take the train, because she "
    "likes to read a book on the way. They often talk about it at dinner."
)


def test_the_built_in_model_for_length_40_reads_twice_as_much():
    """The stated rule for long texts: the first pieces that fit are read, the rest has no influence."""
    short, longer = load_autoencoder("bart-20"), load_autoencoder("bart-40")
    assert (short.length, longer.length) == (20, 40)
    latents = longer.encode([LONG, LONG + " And so on, and so on.", ""])
    assert latents.shape == (3, 40, longer.width)
    np.testing.assert_allclose(latents[0], latents[1], atol=1e-5)
    decoded = longer.decode(longer.record.trained_bound().apply(latents))
    read = longer.tokenizer.decode(longer.ids([LONG])[0].tolist(), skip_special_tokens=True).strip()
    assert LONG.startswith(read)
    whole_sentences = LONG[: LONG.index(" They often")]
    assert read.startswith(whole_sentences)
    assert decoded[0] == decoded[1]
    assert decoded[0].startswith(whole_sentences)
    assert len(short.decode(short.encode([LONG]))[0]) < 0.7 * len(whole_sentences)


def test_capacity():
    assert capacity_bits(250, 1e-5, 10**6) == pytest.approx(62, abs=1)
    assert capacity_bits(500, 1e-5, 128) == pytest.approx(84, abs=2)
    assert capacity_bits(10, 1e-5, 128) < 1


def test_an_l1_bound_puts_the_narrow_latent_on_the_simplex():
    model = tiny("narrow", bound=ClipL1(1.0).to_dict())
    latents = model.encode(["", "cat", "word " * 1000])
    assert latents.min() >= 0
    np.testing.assert_allclose(latents.sum(axis=(1, 2)), 1.0, atol=1e-5)
    np.testing.assert_allclose(ClipL1(1.0).apply(latents), latents, atol=1e-5)


def test_a_lengthened_model_says_the_same_about_short_texts():
    short = tiny("bart")
    longer = short.lengthened(9)
    assert (longer.positions, short.positions) == (9, 6)
    ids = torch.from_numpy(short.ids(["the red cat"]))
    np.testing.assert_allclose(
        short.latents(ids).detach().numpy(), longer.latents(ids).detach().numpy(), atol=1e-6
    )  # with the same six positions
    assert longer.encode(["the red cat"]).shape == (1, 9, 16)
    with pytest.raises(BadInputError, match="a larger one"):
        longer.lengthened(6)


@pytest.mark.parametrize("name", built_in_models() or ["none"])
def test_built_in_models_say_where_they_come_from(name):
    if name == "none":
        pytest.skip("no built-in models in this copy")
    model = load_autoencoder(name)
    assert any("CC BY" in corpus for corpus in model.record.corpora)
    assert model.record.commands[0].startswith("tacit pretrain")
    assert (model.record.trained_bound() is not None) is (name != "bart-20-unclipped")
    assert (model.record.sigma is not None) is (name == "bart-20-unclipped")
    if model.kind != "narrow":
        least = 60 if name == "adept-20-wide" else 95  # long general text is hard to repeat from one vector
        assert model.record.results["held_out_bleu_without_noise"] >= least
    assert "/" not in "".join(model.record.commands).replace("tatoeba.org", "")


def test_a_vocabulary_of_words_knows_nothing_else():
    tokenizer = train_vocabulary(["the red cat", "the red dog"], 6, lowercase=True, words=True)
    assert tokenizer.get_vocab_size() == 6  # four marks, two words
    unknown = tokenizer.token_to_id("<unk>")
    assert tokenizer.encode("The red zebra").ids[2] == tokenizer.encode("Q7").ids[0] == unknown
    assert tokenizer.decode(tokenizer.encode("The red zebra").ids, skip_special_tokens=True) == "the red"


def test_an_adept_in_eight_bits_is_nearly_the_same_and_half_as_large(tmp_path):
    tokenizer = train_vocabulary(PUBLIC_TEXTS, 320)
    torch.manual_seed(1)
    bound = {"kind": "l2", "C": 1.0}
    model = LstmAutoencoder.create(
        tokenizer, Record(kind="adept", positions=2, bound=bound), length=8, embedding=32, hidden=64
    )
    model.save_pretrained(tmp_path / "half", half=True)
    model.save_pretrained(tmp_path / "eight", eight_bits=True)
    loaded = load_autoencoder(tmp_path / "eight")
    for name, value in model.module.state_dict().items():
        rows = value.abs().amax(dim=-1, keepdim=True)
        off = (loaded.module.state_dict()[name] - value).abs()
        assert bool((off <= rows / 254 * (1 + 1e-4) + 1e-12).all()), name
    sizes = [(tmp_path / kind / "model.safetensors").stat().st_size for kind in ("eight", "half")]
    assert sizes[0] < 0.65 * sizes[1]
    with pytest.raises(BadParameterError, match="16 bits at least"):
        load_autoencoder("bart-20").save_pretrained(tmp_path / "bart", eight_bits=True)
