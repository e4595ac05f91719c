"""Private synthetic text: codes, noisy counts, filters, writing, and one card for all of it."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.card import Card  # noqa: E402
from tacit.errors import BadInputError, BadParameterError  # noqa: E402
from tacit.guarantee import Adjacency, Notion  # noqa: E402
from tacit.noise.source import Source  # noqa: E402
from tacit.training.gradients import choose  # noqa: E402
from tacit.training.plan import TrainingPlan  # noqa: E402
from tacit.training.run import TrainingSettings  # noqa: E402
from tacit.training.synthesis import (  # noqa: E402
    Budget,
    ControlCodes,
    ControlledWriting,
    Draft,
    Filters,
    LabelCounts,
    PrivateWriter,
    Sampling,
    Sieve,
    WriterTraining,
    causal_perplexity,
    corpus_guarantee,
    draft_settings,
    equal_counts,
    exact_counts,
    learn_codes,
    model_writer,
    noisy_counts,
    write_rows,
)

PLACES = ["berlin", "paris", "rome", "oslo"]
SONGS = ["jazz", "blues", "rock", "folk"]
WORDS = ["[PAD]", "[UNK]", "[END]", ":", "|", "text", "intent", "music", "travel", "play", "some", "now", "fly", "to",
         "today", *PLACES, *SONGS]  # fmt: skip
CODES = ControlCodes(("intent",), (("music", "travel"),))


def small_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", eos_token="[END]"
    )


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def small_rows(count=400, seed=0, music=0.75):
    """Three quarters ask for music, the others for a flight."""
    generator = np.random.default_rng(seed)
    made = []
    for i in range(count):
        if i < music * count:
            made.append({"intent": "music", "text": f"play some {generator.choice(SONGS)} now"})
        else:
            made.append({"intent": "travel", "text": f"fly to {generator.choice(PLACES)} today"})
    return made


def small_model(tokenizer):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=32, bos_token_id=2, eos_token_id=2,
        pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def make_training(tokenizer, folder, rows=None, epsilon=8.0, steps=40, **changes):
    rows = small_rows() if rows is None else rows
    task = ControlledWriting(length=16, codes=CODES)
    plan = changes.pop("plan", None) or TrainingPlan(len(rows), len(rows) // 2, steps, 2.0, 5e-4)
    settings = TrainingSettings(learning_rate=2e-2, model="tiny", physical=300, checkpoint_every=5)
    return WriterTraining(
        task, small_model(tokenizer), tokenizer, rows, plan, settings, folder, budget=Budget(epsilon), **changes
    )


# Control codes -------------------------------------------------------------------------------------------------------


def test_a_row_is_its_codes_and_its_text_and_only_the_text_counts(tokenizer):
    task = ControlledWriting(length=16, codes=CODES)
    row = {"intent": "music", "text": "play some jazz"}
    encoded = task.encode(row, tokenizer, train=True)
    assert tokenizer.decode(encoded["input_ids"]) == "intent : music | text : play some jazz [END]"
    assert encoded["targets"] == [-100] * 6 + encoded["input_ids"][6:]
    everything = ControlledWriting(length=16, codes=CODES, count_codes=True).encode(row, tokenizer, train=True)
    assert everything["targets"] == encoded["input_ids"]
    assert len(ControlledWriting(length=9, codes=CODES).encode(row, tokenizer, train=True)["input_ids"]) == 9
    with pytest.raises(BadParameterError, match="larger length"):
        ControlledWriting(length=7, codes=CODES).check_length(tokenizer)


def test_a_token_that_begins_texts_stands_once():
    from tokenizers import processors

    words = small_tokenizer()
    words.bos_token = "[END]"
    words._tokenizer.post_processor = processors.TemplateProcessing(single="[END] $A", special_tokens=[("[END]", 2)])
    ids = ControlledWriting(length=16, codes=CODES).encode({"intent": "music", "text": "play"}, words, train=False)
    assert ids["input_ids"][0] == 2
    assert ids["input_ids"].count(2) == 2, "one at the beginning, one at the end"


def test_all_combinations_count_whether_they_occur_or_not():
    rows = [{"a": "x", "b": "1", "text": "t"}, {"a": "y", "b": "2", "text": "t"}]
    codes = learn_codes(rows, ["a", "b"])
    assert codes.combinations == [("x", "1"), ("x", "2"), ("y", "1"), ("y", "2")]
    assert exact_counts(rows, codes) == {("x", "1"): 1, ("x", "2"): 0, ("y", "1"): 0, ("y", "2"): 1}
    assert not codes.given
    assert learn_codes(rows, ["a"], {"a": ["x", "y", "z"]}).given
    with pytest.raises(BadInputError, match="name all that can occur"):
        learn_codes(rows, ["a"], {"a": ["x"]})
    with pytest.raises(BadParameterError, match="combinations"):
        ControlCodes(("a", "b"), (tuple(map(str, range(200))), tuple(map(str, range(200)))))
    with pytest.raises(BadParameterError, match="twice"):
        ControlCodes(("a", "a"), (("x",), ("y",)))


def test_gradients_of_controlled_writing_are_exact(tokenizer):
    task = ControlledWriting(length=16, codes=CODES)
    _, checked = choose(small_model(tokenizer), task.loss, task.probes(tokenizer))
    assert checked.engine == "taps"
    assert checked.norm_deviation < 1e-5


# Counts --------------------------------------------------------------------------------------------------------------


def test_counts_have_laplace_noise_of_the_promised_scale():
    """Mean |noise| of 1,000 cells within 5 standard errors of 1 / epsilon (2 / epsilon for replacing): the false-alarm
    rate of both together is below 2e-6."""
    codes = ControlCodes(("label",), (tuple(f"l{i}" for i in range(1000)),))
    rows = [{"label": f"l{i}", "text": ""} for i in range(1000) for _ in range(200)]
    for adjacency, scale in ((Adjacency.ADD_REMOVE, 10.0), (Adjacency.REPLACE_ONE, 20.0)):
        counted = noisy_counts(rows, codes, epsilon=0.1, adjacency=adjacency, source=Source.from_test_seed(1))
        noise = np.array(list(counted.counts.values())) - 200
        assert abs(np.abs(noise).mean() - scale) < 5 * scale / math.sqrt(1000) + 0.05
        assert counted.guarantee is not None
        assert not counted.guarantee.is_private, "a test seed undoes the noise"
    real = noisy_counts(rows[:50], CODES_OF_TEN, epsilon=0.5, adjacency=Adjacency.ADD_REMOVE, source=Source.from_os())
    assert real.guarantee.notion is Notion.PURE
    assert real.guarantee.epsilon == 0.5
    assert all(count >= 0 for count in real.counts.values())


CODES_OF_TEN = ControlCodes(("label",), (tuple(f"l{i}" for i in range(10)),))


def test_shares_add_up_and_follow_the_counts():
    counts = LabelCounts({("a",): 70, ("b",): 29, ("c",): 1}, None)
    assert counts.shares(100) == {("a",): 70, ("b",): 29, ("c",): 1}
    assert sum(counts.shares(7).values()) == 7
    assert LabelCounts({("a",): 0, ("b",): 0}, None).shares(4) == {("a",): 2, ("b",): 2}
    assert equal_counts(CODES).shares(10) == {("music",): 5, ("travel",): 5}
    with pytest.raises(BadParameterError, match="at least 1"):
        counts.shares(0)


# Filters -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("play", "short"),
        ("to to to to to to to to to to", "repetition"),
        ("play some | text: jazz", "code"),
        ("Intent: Music play some jazz", "code"),
        ("play  some JAZZ", "duplicate"),
        ("fly to oslo today", None),
    ],
)
def test_each_filter_refuses_what_it_names(text, reason):
    sieve = Sieve(Filters(), CODES)
    assert sieve.keep([("music",)], ["play some jazz"]) == [True]
    assert sieve.keep([("music",)], [text]) == [reason is None]
    assert dict(sieve.refused) == ({reason: 1} if reason else {})


def test_duplicates_may_be_kept_and_perplexity_needs_a_judge():
    sieve = Sieve(Filters(duplicates=False), CODES)
    assert sieve.keep([("music",)] * 2, ["play some jazz"] * 2) == [True, True]
    with pytest.raises(BadParameterError, match="judge"):
        Sieve(Filters(perplexity=50.0), CODES)
    judged = Sieve(Filters(perplexity=50.0), CODES, lambda texts: [10.0 if "jazz" in t else 90.0 for t in texts])
    assert judged.keep([("music",)] * 3, ["play some jazz", "play some rock", ""]) == [True, False, False]
    assert judged.refused == Counter({"unlikely": 1, "empty": 1})


def test_perplexity_is_that_of_the_model(tokenizer):
    model = small_model(tokenizer)
    judge = causal_perplexity(model, tokenizer)
    texts = ["play some jazz now", "fly"]
    ids = tokenizer(texts[0])["input_ids"] + [2]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]))
    assert judge(texts)[0] == pytest.approx(float(loss.exp()), rel=1e-4)


# Writing -------------------------------------------------------------------------------------------------------------


def numbered(combinations, number):
    """A writer that says what it was asked, every third time a duplicate."""
    return [f"{c[0]} text {number} {place if place % 3 else 0}" for place, c in enumerate(combinations)]


def test_what_is_refused_is_asked_for_again_and_proportions_hold():
    counts = LabelCounts({("music",): 30, ("travel",): 10}, None)
    task = ControlledWriting(codes=CODES)
    written = write_rows(numbered, counts, 40, task=task, filters=Filters(), sampling=Sampling(batch=8))
    assert Counter(c[0] for c, _ in written.rows) == {"music": 30, "travel": 10}
    assert written.generated > 40
    assert written.refused == {"duplicate": written.generated - 40}
    assert not written.missing
    never = write_rows(
        lambda c, n: [""] * len(c), counts, 4, task=task, filters=Filters(), sampling=Sampling(), rounds=3
    )
    assert never.missing == {("music",): 3, ("travel",): 1}
    assert never.generated == 12


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    counts = LabelCounts({("music",): 30, ("travel",): 10}, None)
    task, sampling = ControlledWriting(codes=CODES), Sampling(batch=8, seed=4)
    settings = draft_settings(rows=40, counts=counts, filters=Filters(), sampling=sampling, task=task, weights="w")
    whole = write_rows(numbered, counts, 40, task=task, filters=Filters(), sampling=sampling)
    calls = []

    def counted(combinations, number):
        calls.append(number)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return numbered(combinations, number)

    path = tmp_path / "draft"
    options = {"task": task, "filters": Filters(), "sampling": sampling}
    with pytest.raises(KeyboardInterrupt):
        write_rows(counted, counts, 40, draft=Draft(path, settings, resume=False), **options)
    assert Draft.seed_of(path) == 4
    with path.open("a") as file:
        file.write('{"batch": 3, "te')  # the power went out here
    with pytest.raises(BadInputError, match="go on with resume"):
        Draft(path, settings, resume=False)
    with pytest.raises(BadInputError, match="other settings"):
        Draft(path, {**settings, "rows": 41}, resume=True)
    resumed = write_rows(counted, counts, 40, draft=Draft(path, settings, resume=True), **options)
    assert resumed == whole
    assert calls.count(0) == calls.count(1) == calls.count(2) == 1, "finished batches are not written again"


def test_batches_with_prompts_of_different_length_are_written_as_alone(tokenizer):
    """Left padding must not change what a model says: at a temperature near 0 texts are the same alone and together."""
    codes = ControlCodes(("intent",), (("music", "travel to rome"),))
    task = ControlledWriting(length=16, codes=codes)
    write = model_writer(small_model(tokenizer), tokenizer, task, Sampling(temperature=1e-4))
    together = write([("music",), ("travel to rome",)], 0)
    assert together[1] == write([("travel to rome",)], 0)[0]
    alone = write([("music",)], 0)[0]
    assert alone.startswith(together[0]), "the shorter prompt alone has more room, and begins alike"
    assert write([("music",)] * 3, 5) == write([("music",)] * 3, 5), "a batch is a function of its number"
    assert max(len(text.split()) for text in together) <= 8, "16 pieces, 8 of them codes"


# The whole -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("writer") / "model"
    training = make_training(tokenizer, folder, trials=2)
    return folder, training, training.run()


def test_the_folder_promises_training_and_counts_together(trained):
    folder, training, guarantee = trained
    assert guarantee.notion is Notion.APPROXIMATE
    assert guarantee.epsilon == pytest.approx(2 * (training.plan.epsilon() + 8.0 * 0.05))
    assert guarantee.delta == pytest.approx(2 * training.plan.delta)
    assert Card.from_json((folder / "card.json").read_text()).guarantee.epsilon == guarantee.epsilon
    alone = Card.from_json((folder / "training.card.json").read_text()).guarantee
    assert alone.epsilon == pytest.approx(2 * training.plan.epsilon())
    assert any("read off the private rows" in line for line in guarantee.assumptions)
    kept = json.loads((folder / "synthesis.json").read_text())
    assert kept["columns"] == ["intent"]
    transformers.AutoModelForCausalLM.from_pretrained(folder)


def test_a_private_model_writes_what_its_codes_say_in_the_noisy_proportions(trained):
    folder, _, _ = trained
    writer = PrivateWriter.open(folder)
    model, words = writer.load()
    write = model_writer(model, words, writer.task, Sampling())
    written = write_rows(
        write, writer.counts, 60, task=writer.task, filters=Filters(duplicates=False), sampling=Sampling()
    )
    labels = Counter(c[0] for c, _ in written.rows)
    shares = writer.counts.shares(60)
    assert labels == {c[0]: n for c, n in shares.items()}
    assert abs(labels["music"] - 45) < 5, "three quarters of 60, noise of scale 2.5 on 400 rows"
    right = [("play" in text) == (c[0] == "music") for c, text in written.rows]
    assert np.mean(right) > 0.8, "a guess at the noise has a half"
    promised = corpus_guarantee(writer.guarantee, Filters(), Sampling(seed=7))
    assert promised.epsilon == writer.guarantee.epsilon
    assert "post-processing" in promised.history[-1]
    assert any("one record at a time" in line for line in promised.not_covered)
    assert "7 (public)" in promised.parameters["seed of the sampling"]


def test_with_hardly_any_budget_nothing_is_learned(tokenizer, tmp_path):
    """The other end: with noise of 1,000 times the bound the text does not follow the labels (false-alarm rate of 60
    fair guesses passing 50: 1e-7)."""
    rows = small_rows()
    plan = TrainingPlan(len(rows), 200, 10, 1000.0, 5e-4)
    make_training(tokenizer, tmp_path / "m", plan=plan).run()
    writer = PrivateWriter.open(tmp_path / "m")
    model, words = writer.load()
    written = write_rows(
        model_writer(model, words, writer.task, Sampling()), equal_counts(CODES), 60, task=writer.task,
        filters=Filters(shortest=1, duplicates=False, repetition=1.0, codes=False), sampling=Sampling(),
    )  # fmt: skip
    assert sum(("play" in text) == (c[0] == "music") for c, text in written.rows) < 50


def test_a_run_that_stopped_in_training_or_before_counting_goes_on(tokenizer, tmp_path, monkeypatch):
    def stop(progress):
        if progress.step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_training(tokenizer, tmp_path / "m", steps=10).run(stop)
    with pytest.raises(BadInputError, match="go on with resume"):
        make_training(tokenizer, tmp_path / "m", steps=10).check_folder(resume=False)
    second = make_training(tokenizer, tmp_path / "m", steps=10)
    monkeypatch.setattr(second, "_count", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        second.run(resume=True)
    with pytest.raises(BadInputError, match="not finished"):
        PrivateWriter.open(tmp_path / "m")
    third = make_training(tokenizer, tmp_path / "m", steps=10)
    third.check_folder(resume=True)
    guarantee = third.run(lambda p: pytest.fail("the model is trained already"), resume=True)
    assert guarantee.epsilon == pytest.approx(third.plan.epsilon() + 0.4)
    again = make_training(tokenizer, tmp_path / "m", steps=10).run(resume=True)
    assert again == Card.from_json((tmp_path / "m" / "card.json").read_text()).guarantee, "nothing is counted twice"


def test_the_card_is_written_before_the_counts_it_pays_for(tokenizer, tmp_path, monkeypatch):
    from tacit.training.synthesis import writer as module

    order = []
    real = module.write_whole
    monkeypatch.setattr(module, "write_whole", lambda path, text: (order.append(path.name), real(path, text)))
    make_training(tokenizer, tmp_path / "m", steps=2).run()
    assert order == ["command.json", "training.card.json", "card.json", "synthesis.json"]


def test_test_seeds_and_baselines_promise_nothing(tokenizer, tmp_path):
    seeded = make_training(tokenizer, tmp_path / "a", steps=2, seed=1).run()
    assert seeded.notion is Notion.NONE
    rows = small_rows()
    plan = TrainingPlan.without_privacy(records=len(rows), batch=100, epochs=0.5)
    plain = make_training(tokenizer, tmp_path / "b", epsilon=math.inf, plan=plan).run()
    assert plain.notion is Notion.NONE
    assert PrivateWriter.open(tmp_path / "b").counts.counts == exact_counts(rows, CODES)
    assert corpus_guarantee(plain, Filters(), Sampling()).notion is Notion.NONE


def test_balanced_writing_counts_nothing_and_pays_nothing_for_it(tokenizer, tmp_path):
    training = make_training(tokenizer, tmp_path / "m", steps=2, balanced=True)
    assert training.run().epsilon == pytest.approx(training.plan.epsilon())
    assert PrivateWriter.open(tmp_path / "m").counts.shares(10) == {("music",): 5, ("travel",): 5}
    assert Budget(4.0).for_training(counted=False) == 4.0
    assert Budget(4.0).for_training(counted=True) == pytest.approx(3.8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Budget(0.0), "positive"),
        (lambda: Budget(1.0, count_share=1.0), "between 0 and 1"),
        (lambda: Sampling(temperature=0.0), "positive"),
        (lambda: Sampling(top_p=0.0), "top-p"),
        (lambda: Filters(shortest=0), "at least 1"),
        (lambda: Filters(repetition=0.0), "above 0"),
        (lambda: Filters(perplexity=1.0), "larger than 1"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(BadParameterError, match=message):
        make()


def test_a_folder_of_something_else_is_named(tmp_path, trained):
    with pytest.raises(BadInputError, match="not made by"):
        PrivateWriter.open(tmp_path)
    (tmp_path / "synthesis.json").write_text("{}")
    with pytest.raises(BadInputError, match="damaged"):
        PrivateWriter.open(tmp_path)
    (tmp_path / "synthesis.json").write_text((trained[0] / "synthesis.json").read_text())
    with pytest.raises(BadInputError, match="no privacy card"):
        PrivateWriter.open(tmp_path)
