"""Jobs on a pretend device, on which nothing may be mixed with what was left on the processor: their results are those
of the processor, and the promises that hang on batches are tried there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.auditing.models.extraction import sample  # noqa: E402
from tacit.auditing.models.scores.networks import (  # noqa: E402
    AutoencoderScorer,
    CausalScorer,
    ClassifierScorer,
    MaskedScorer,
    Seq2SeqScorer,
)
from tacit.devices import chosen_device, computing_on, device_of  # noqa: E402
from tacit.documents.apart import check_latents_apart  # noqa: E402
from tacit.documents.autoencoders.bart import BartAutoencoder  # noqa: E402
from tacit.documents.autoencoders.base import Record  # noqa: E402
from tacit.documents.autoencoders.lstm import LstmAutoencoder  # noqa: E402
from tacit.documents.autoencoders.narrow import NarrowAutoencoder  # noqa: E402
from tacit.documents.autoencoders.vocabulary import train_vocabulary  # noqa: E402
from tacit.documents.bounds import AnalyticGaussian, ClipValue  # noqa: E402
from tacit.documents.dp_mlm import DPMLM  # noqa: E402
from tacit.documents.encoder import SentenceEncoder, _load  # noqa: E402
from tacit.documents.language_models.alone import check_rows_apart  # noqa: E402
from tacit.documents.language_models.labeling import SetReader  # noqa: E402
from tacit.documents.language_models.reading import FramedReader  # noqa: E402
from tacit.documents.language_models.writing import PromptedWriter  # noqa: E402
from tacit.documents.paraphrase import Paraphrase  # noqa: E402
from tacit.documents.pretraining.corpus import PublicText  # noqa: E402
from tacit.documents.pretraining.loop import train  # noqa: E402
from tacit.documents.pretraining.plan import PretrainingPlan  # noqa: E402
from tacit.documents.pretraining.prune import FIRST_KEYS  # noqa: E402
from tacit.errors import BadParameterError, NoGuaranteeError  # noqa: E402
from tacit.evaluation.learners.transformer import Transformer  # noqa: E402
from tacit.evaluation.similarity.fluency import surprise  # noqa: E402
from tacit.evaluation.vectors import token_states  # noqa: E402
from tacit.jobs.codebook import CodebookConfig  # noqa: E402
from tacit.jobs.evaluate import EvaluateConfig  # noqa: E402
from tacit.jobs.rewrite import RewriteConfig  # noqa: E402
from tacit.training.ensemble.folder import EnsembleSettings  # noqa: E402
from tacit.training.ensemble.learning import ShardNetwork  # noqa: E402
from tests.documents.test_language_models import PROMPT, TEXTS, tiny  # noqa: E402
from tests.training.pretend_device import pretend_device  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:an epsilon of:tacit.errors.TacitWarning")

CLOSE = {"rtol": 1e-4, "atol": 1e-5}
WORDS = [
    "red apples are sweet",
    "the train was late",
    "nobody knows",
    "a quiet green field by the river",
    "late trains",
]


@pytest.fixture
def device() -> Iterator[torch.device]:
    with pretend_device() as pretended, computing_on(pretended):
        yield pretended


def on(kind: str, device: torch.device | str):
    model = tiny.__wrapped__(kind)  # a model of its own: the shared one keeps what the processor has computed
    model.model.to(device)
    return model


# Where models go -----------------------------------------------------------------------------------------------------


def test_models_stay_on_the_processor_unless_a_job_says_otherwise():
    assert chosen_device().type == "cpu"
    with computing_on("auto"), computing_on(torch.device("lazy:0")):
        assert chosen_device().type == "lazy"
    assert chosen_device().type == "cpu"


def test_a_device_that_is_missing_is_refused_at_once():
    with pytest.raises(BadParameterError, match="no device 'cuda:7'"), computing_on("cuda:7"):
        pass


@pytest.mark.parametrize("configuration", [EvaluateConfig, CodebookConfig, RewriteConfig])
def test_a_configuration_has_a_device_that_no_release_names(configuration):
    field = configuration.model_fields["device"]
    assert field.default == "auto"
    assert "device" not in configuration.model_construct().identity() if configuration is EvaluateConfig else True


def test_a_rewriting_job_gives_its_device_to_mechanisms_with_a_model():
    job = RewriteConfig(input=["a"], mechanism="paraphrase", epsilon=360, device="cpu")
    assert job.of_mechanism()["device"] == "cpu"
    named = RewriteConfig(input=["a"], mechanism="paraphrase", epsilon=360, options={"device": "mps"})
    assert named.of_mechanism()["device"] == "mps"
    with pytest.raises(BadParameterError, match="has no model that could compute on 'cuda'"):
        RewriteConfig(input=["a"], mechanism="santext", epsilon=2, device="cuda").of_mechanism()
    assert "device" not in RewriteConfig(input=["a"], mechanism="santext", epsilon=2).of_mechanism()
    cluster = RewriteConfig(input="a", output="b", mechanism="paraphrase", epsilon=360, engine="ray")
    assert "device" not in cluster.of_mechanism(), "on a cluster models stay on the processors"


# Language models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "t5"])
@pytest.mark.parametrize("base", ["model", "uniform"])
def test_a_paraphrase_has_the_law_of_the_processor(kind, base, device):
    def law(model):
        made = Paraphrase(model=model, tokens=4, input_tokens=12, prompt=PROMPT, base=base, epsilon=40.0, batch_size=3,
                          interval="-8:-0.5", seed=1)  # fmt: skip
        return made.law(TEXTS[0], made.language_model.support[:2]), made.rewrite(TEXTS[:2]).texts

    usual, there = law(tiny(kind)), law(on(kind, device))
    np.testing.assert_allclose(there[0], usual[0], rtol=1e-3, atol=1e-9)
    assert len(there[1]) == 2


def test_dp_mlm_has_the_law_of_the_processor(device):
    def law(model):
        return DPMLM(model=model, tokens=4, epsilon=60.0, interval="-8:-0.5", seed=1).law(TEXTS[0])

    np.testing.assert_allclose(law(on("bert", device)), law(tiny("bert")), rtol=1e-3, atol=1e-9)


def test_rows_that_mix_on_a_device_are_refused(monkeypatch):
    model = tiny.__wrapped__("llama")
    frame = model.frame(PROMPT)
    check_rows_apart(model, frame, 4, 12)
    begin = model.begin

    def mixing(*given):
        running, scores = begin(*given)
        return running, scores + 1e-7 * scores.mean()

    monkeypatch.setattr(model, "begin", mixing)
    with pytest.raises(NoGuaranteeError, match="beside other texts"):
        check_rows_apart(model, frame, 4, 12)


def test_prompts_with_records_are_read_as_on_the_processor(device):
    def read(model):
        reader = FramedReader(model, model.frame(PROMPT), model.frame(PROMPT), 3, 8, 4)
        reading = reader.read(TEXTS[:3])
        logits = [reading.logits]
        for step in range(10):
            reading.extend(np.full(3, step + 3), np.array([step == 4, False, False]))
            logits.append(reading.logits)
        return np.stack(logits)

    np.testing.assert_allclose(read(on("llama", device)), read(tiny("llama")), **CLOSE)


def test_sets_vote_and_sentences_are_written_and_judged_as_on_the_processor(device):
    def numbers(model) -> tuple[object, ...]:
        sets = [[("a b", "red"), ("b", "blue")], [("c", "red")]]
        votes = SetReader(model, sets, ["red", "blue"], most=2, input_tokens=4, rows=2).scores("a")
        writer = PromptedWriter(model, rows=2, tokens=4)
        return votes, surprise(TEXTS[:3], model), writer.continuations("a b", 3)

    usual, there = numbers(tiny("llama")), numbers(on("llama", device))
    np.testing.assert_allclose(there[0], usual[0], **CLOSE)
    np.testing.assert_allclose(there[1], usual[1], **CLOSE)
    assert len(there[2]) == len(usual[2]) == 2


def test_a_shard_of_an_ensemble_learns_as_on_the_processor(device):
    def weights(model):
        network = ShardNetwork(model, rank=2, seed=0)
        settings = EnsembleSettings(
            model="tiny", shards=2, unit="record", dataset="x", rank=2, length=8, epochs=2.0, batch=2,
            learning_rate=1e-2, start_seed=0,
        )  # fmt: skip
        network.model.eval()
        for module in network.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        network.learn(TEXTS[:3], settings, 1, lambda step, total: None)
        return [weight.detach().cpu() for weight in network.weights.values()]

    for there, usual in zip(weights(on("llama", device)), weights(tiny("llama")), strict=True):
        torch.testing.assert_close(there, usual, rtol=1e-3, atol=1e-5)


# Attacks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "scorer"), [("llama", CausalScorer), ("bert", MaskedScorer), ("t5", Seq2SeqScorer)])
def test_losses_of_a_model_are_those_of_the_processor(kind, scorer, device):
    def losses(model):
        return scorer(model.model, model.tokenizer, "tiny", model.room).losses(TEXTS[:3]).total

    np.testing.assert_allclose(losses(on(kind, device)), losses(tiny(kind)), **CLOSE)


def test_a_classifier_is_scored_and_a_model_writes_there(device):
    words = tiny("bert").tokenizer
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=2,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    usual = ClassifierScorer(model, words, "tiny").losses(TEXTS[:2], ["0", "1"]).total
    model.to(device)
    np.testing.assert_allclose(
        ClassifierScorer(model, words, "tiny").losses(TEXTS[:2], ["0", "1"]).total, usual, **CLOSE
    )
    writer = on("llama", device)
    assert len(sample(writer.model, writer.tokenizer, ("a",), samples=2, tokens=2)) == 2


# Encoders and learners -----------------------------------------------------------------------------------------------


@pytest.fixture
def encoder_folder(tmp_path: Path) -> Path:
    words = tiny("bert").tokenizer
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(tmp_path / "encoder")
    words.save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder"


def test_an_encoder_computes_where_it_was_made_for(encoder_folder):
    usual = SentenceEncoder(encoder_folder)
    with pretend_device() as pretended:
        with computing_on(pretended):
            there = SentenceEncoder(encoder_folder)
        vectors = there.encode(WORDS)
        assert device_of(there.model).type == pretended.type
        pieces = [[5, 6], [7]]
        for states, expected in zip(token_states(there, pieces), token_states(usual, pieces), strict=True):
            np.testing.assert_allclose(states, expected, **CLOSE)
        alone = there.encode_alone(WORDS[0])
    np.testing.assert_allclose(vectors, usual.encode(WORDS), **CLOSE)
    np.testing.assert_allclose(alone, usual.encode_alone(WORDS[0]), **CLOSE)
    _load.cache_clear()


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_learner_trains_there(task, encoder_folder):
    texts: list[object] = [WORDS[i % 3].split() if task == "tagging" else WORDS[i % 3] for i in range(12)]
    labels: list[object] = [["ab"[i % 2]] * len(texts[i]) if task == "tagging" else "abc"[i % 3] for i in range(12)]

    def learner():
        made = Transformer(task, str(encoder_folder), epochs=1, batch_size=4, longest=16)
        return made.fit(texts, labels)

    with pretend_device() as pretended:
        with computing_on(pretended):
            there = learner()
        assert device_of(there.network).type == pretended.type
        answers = there.predict(texts)
    assert len(answers) == len(texts)
    _load.cache_clear()


# Rewriting models ----------------------------------------------------------------------------------------------------


def bart(words) -> BartAutoencoder:
    return BartAutoencoder.create(words, Record(kind="bart", positions=6), width=16, layers=1, heads=2, feed_forward=16)


def adept(words) -> LstmAutoencoder:
    return LstmAutoencoder.create(words, Record(kind="adept", positions=2), length=6, embedding=8, hidden=8)


def narrow(words) -> NarrowAutoencoder:
    record = Record(kind="narrow", positions=3)
    return NarrowAutoencoder.create_narrow(
        words, record, length=6, latent_width=4, width=16, layers=1, heads=2, feed_forward=16
    )


@pytest.mark.parametrize("make", [bart, adept, narrow])
def test_rewriting_models_learn_and_write_as_on_the_processor(make: Callable, tmp_path: Path):
    words = train_vocabulary(WORDS * 4, 60)
    corpus = PublicText(texts=[f"{text} {i}" for i, text in enumerate(WORDS * 4)], name="made up")
    plan = PretrainingPlan(steps=2, batch_size=4, evaluate_every=1, held_out=4, epsilons=(50.0,), seed=1)

    def made(folder: Path) -> tuple[object, ...]:
        torch.manual_seed(0)
        model = make(words)
        limit = ClipValue(1.0)
        if model.kind == "adept":  # the pretend device cannot put weights back into an LSTM
            model.module.to(chosen_device())
            facts = {"held_out_loss": 0.0}
        else:
            facts = train(model, corpus, plan, folder, bound=limit, noise=AnalyticGaussian(1e-5))
        latents = model.encode(WORDS)
        check_latents_apart(model.encode, model.kind)
        losses = AutoencoderScorer(model, "tiny").losses(WORDS).total
        importance = FIRST_KEYS.importance(model, 0) if model.kind == "bart" else 0.0
        return latents, facts["held_out_loss"], losses, importance, model.decode(latents, beams=1)

    usual = made(tmp_path / "usual")
    with pretend_device() as pretended, computing_on(pretended):
        there = made(tmp_path / "there")
    for value, expected in zip(there[:4], usual[:4], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4)
    assert len(there[4]) == len(usual[4])


def test_latents_that_mix_are_refused():
    def mixing(texts: list[str]):
        return np.full((len(texts), 1, 1), sum(map(len, texts)), dtype=np.float32)

    with pytest.raises(NoGuaranteeError, match="depends on the texts beside it"):
        check_latents_apart(mixing, "mixing")
