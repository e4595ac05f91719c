"""Evolution against a fixed sketch: what is kept fits, reads well and names what it was made from; it goes on after a
kill; a writer takes part."""

import json

import numpy as np
import pytest

import tacit
from tacit.documents.language_models.writing import PromptedWriter, cleaned_item, finished_items, is_sentence
from tacit.errors import BadParameterError
from tacit.jobs.synthesize_config import MatchingConfig
from tacit.matching.evolution.fit import fit_of
from tacit.matching.evolution.phrases import PublicPhrases, joined, tokens_of
from tacit.matching.evolution.rounds import Evolution, evolved_pool
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import SentencePool, load_pool, words_key, write_pool
from tacit.matching.record import WorkRecord, record_key
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import rows_in_memory

ROWS = {
    "weather": ["Will it rain tomorrow?", "It is snowing again.", "The wind is cold.", "How warm is the summer?"],
    "money": ["How much money do I owe?", "The bank closed my account.", "I paid the bill.", "My card was stolen."],
}


@pytest.fixture(scope="module")
def pool():
    general = load_pool("general")
    places = list(range(0, len(general), 40))
    return SentencePool(
        "part",
        [general.sentences[place] for place in places],
        general.sources,
        general.source_ids[places],
        [general.credits[place] for place in places],
        "part-digest",
    )


@pytest.fixture(scope="module")
def sketch():
    pairs = [(text, label) for label, texts in ROWS.items() for text in texts * 60]
    texts, labels = zip(*pairs, strict=True)
    rule = ListedLabels(tuple(ROWS))
    return build_sketch(rows_in_memory(texts, labels), rule, default_map(), epsilon=1.0, delta=1e-6, seed=5).sketch


class KnownWriter:
    """A writer with sentences of its own; it can break down after some labels."""

    name, source = "known", "a known writer (CC0)"

    def __init__(self, breaks_after=None):
        self.calls, self.breaks_after, self.shown = 0, breaks_after, []

    def like(self, examples, label, seed, others=()):
        if self.calls == self.breaks_after:
            raise KeyboardInterrupt
        self.calls += 1
        self.shown.append((examples, label, others))
        subject = {"weather": "the snow and the rain", "money": "the bank and the money"}[label]
        return [f"Everybody at home speaks of {subject} ({seed % 7})."] if examples else []


@pytest.fixture(scope="module")
def evolved(sketch, pool):
    made = evolved_pool(sketch, [pool], Evolution(rounds=2))
    assert made is not None
    return made


def test_what_is_kept_is_new_and_names_what_it_was_made_from(evolved, pool):
    public = {words_key(sentence) for sentence in pool.sentences}
    assert len({words_key(sentence) for sentence in evolved.sentences}) == len(evolved)
    assert public.isdisjoint(map(words_key, evolved.sentences))
    changed = [place for place in range(len(evolved)) if evolved.source_of(place).name.startswith("changed by Tacit")]
    frames = [place for place in range(len(evolved)) if evolved.source_of(place).name.startswith("sentence frames")]
    assert changed
    assert frames
    assert len(changed) + len(frames) == len(evolved)
    assert all("CC BY 2.0 FR" in evolved.source_of(place).license and evolved.credits[place] for place in changed)


def test_changed_sentences_fit_better_than_those_they_were_made_from(sketch, pool):
    """In one round each kept sentence has one origin, so the two can be compared."""
    made = evolved_pool(sketch, [pool], Evolution(rounds=1))
    fit = fit_of(sketch, pool.sentences)
    by_credit = dict(zip(pool.credits, pool.sentences, strict=True))
    changed = [place for place in range(len(made)) if made.source_of(place).name.startswith("changed")]
    new = fit.scores([made.sentences[place] for place in changed]).max(axis=1)
    old = fit.scores([by_credit[made.credits[place]] for place in changed])
    assert np.all(new > old.min(axis=1))
    assert new.mean() > old.max(axis=1).mean()


def test_what_is_kept_reads_as_usual_as_half_of_the_public_sentences(evolved, pool):
    phrases = PublicPhrases(pool.sentences)
    assert all(phrases.likelihood(tokens_of(sentence)) >= phrases.usual for sentence in evolved.sentences)
    assert phrases.likelihood(tokens_of("zebra the of of the quantum")) < phrases.usual


def test_the_same_evolution_is_the_same_and_more_rounds_go_on_with_it(sketch, pool, evolved, tmp_path):
    first = evolved_pool(sketch, [pool], Evolution(rounds=1, folder=tmp_path))
    (record,) = tmp_path.iterdir()
    second = evolved_pool(sketch, [pool], Evolution(rounds=2, folder=tmp_path))
    assert list(tmp_path.iterdir()) == [record]
    assert second.sentences[: len(first)] == first.sentences
    assert (second.sentences, second.credits) == (evolved.sentences, evolved.credits)


def test_an_interrupted_evolution_writes_nothing_twice(sketch, pool, tmp_path):
    whole, broken, again = KnownWriter(), KnownWriter(breaks_after=1), KnownWriter()
    with pytest.raises(KeyboardInterrupt):
        evolved_pool(sketch, [pool], Evolution(rounds=1, writer=broken, folder=tmp_path))
    (record,) = tmp_path.iterdir()
    with record.open("ab") as file:
        file.write(b'{"work": "round 0", "resu')  # a line that a crash has cut off
    made = evolved_pool(sketch, [pool], Evolution(rounds=1, writer=again, folder=tmp_path))
    uninterrupted = evolved_pool(sketch, [pool], Evolution(rounds=1, writer=whole))
    assert (broken.calls, again.calls, whole.calls) == (1, 1, 2)
    assert made.sentences == uninterrupted.sentences
    written = [place for place in range(len(made)) if made.source_of(place).name.startswith("written by a known")]
    assert written


def test_a_writer_is_shown_the_label_after_other_labels_and_nothing_else_is_varied(sketch, pool):
    writer = KnownWriter()
    made = evolved_pool(sketch, [pool], Evolution(rounds=1, writer=writer))
    assert [label for _, label, _ in writer.shown] == list(ROWS)
    public = set(pool.sentences)
    for examples, label, others in writer.shown:
        assert [name for name, _ in others] == [name for name in ROWS if name != label]
        assert public.issuperset([*examples, *(sentence for _, sentence in others)])
        assert len(set(examples)) == 3
        assert not any(":" in sentence for sentence in examples)
    assert all(made.source_of(place).name.startswith("written by a known writer") for place in range(len(made)))


def test_a_prompt_of_subjects_ends_with_the_label_and_keeps_what_is_about_it():
    class Continued(PromptedWriter):
        def continuations(self, prompt, seed):
            self.prompt = prompt
            return [" Is my card here?\nfees: Why do I pay?\nnew card: It has not come.\nnew card: I", " I want one"]

    writer = Continued(model=None)
    written = writer.like(["A new card came."], "new_card", 1, [("fees", "What does it cost?")])
    assert writer.prompt.split("\n")[2:] == ["fees: What does it cost?", "new card: A new card came.", "new card:"]
    assert written == ["Is my card here?", "It has not come."]


def test_the_record_of_other_work_is_not_continued(tmp_path):
    path = tmp_path / "work.jsonl"
    first = WorkRecord(path, {"seed": 1})
    first.add("a", [1])
    assert WorkRecord(path, {"seed": 1}).done("a") == [1]
    assert WorkRecord(path, {"seed": 2}).done("a") is None
    assert record_key({"seed": 1}) != record_key({"seed": 2})
    assert json.loads(path.read_text().splitlines()[0])["seed"] == 2


def test_the_card_and_the_attribution_say_what_was_done(tmp_path):
    general = load_pool("general")
    entries = [(general.sentences[place], 0, general.credits[place]) for place in range(0, len(general), 30)]
    write_pool(tmp_path / "small.tacit", "small", general.sources, entries)
    pools = {"pools": [str(tmp_path / "small.tacit")]}
    rows = [{"text": text, "topic": label} for label, texts in ROWS.items() for text in texts * 60]
    options = {"label_column": "topic", "labels": list(ROWS), "epsilon": 2.0, "rows": 400, "sample_seed": 1}
    made = tacit.synthesize(rows, output=tmp_path / "out.csv", evolve=1, **options, **pools)
    assert "post-processing" in made.guarantee.parameters["evolved sentences"]
    assert any("changed by Tacit" in line.source for line in made.guarantee.provenance)
    assert "changed by Tacit from: Tatoeba" in (tmp_path / "out.csv.ATTRIBUTION.txt").read_text()
    again = tacit.synthesize(
        from_sketch=made.sketch_path,
        output=tmp_path / "out.csv",
        evolve=1,
        rows=400,
        sample_seed=1,
        force=True,
        **pools,
    )
    assert again.texts == made.texts


def test_a_writer_needs_rounds():
    with pytest.raises(BadParameterError) as error:
        MatchingConfig(data=[{"text": "a"}], epsilon=1, writer="smollm2")
    assert error.value.code == "writer-without-rounds"


def test_items_of_a_list_are_cleaned_and_half_ones_left_out():
    text = ' "I lost my card."\n2. Where is the next bank?\n\n- As an AI language model I cannot.\n- How do'
    assert finished_items(text) == ["I lost my card.", "Where is the next bank?"]
    assert cleaned_item("- 1. 'What is it?'") == "What is it?"
    assert not is_sentence("go home and go home and go home")
    assert joined(tokens_of("Don't go, please!")) == "Don't go, please!"
