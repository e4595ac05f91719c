"""Steps become cells: axes, variants, joins, keys, and contradictions that are found before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import BadInputError
from tacit.experiments import steps as step_kinds
from tacit.experiments.config import load
from tacit.experiments.findings import ExperimentFinding, Judge, load_findings
from tacit.experiments.measures import check_measure
from tacit.experiments.plan import Plan, outline
from tacit.experiments.quantities import LARGEST, SMALLEST, score
from tacit.experiments.results import Results
from tacit.experiments.steps import Input, Kind
from tacit.experiments.validation import check_choices, check_report, validate
from tests.experiments.small import ExperimentFile, plan_of, small, write_files

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def value(tmp_path: Path) -> ExperimentFile:
    write_files(tmp_path)
    return small(tmp_path)


def axes(plan: Plan, name: str) -> list[dict[str, object]]:
    return [step.axes for step in plan.named(name)]


def complaint(value: ExperimentFile, folder: Path, *findings: ExperimentFinding) -> str:
    with pytest.raises(BadInputError) as error:
        validate(plan_of(value, folder, findings=findings))
    assert "\n" not in str(error.value)
    return str(error.value)


# Cells ------------------------------------------------------------------------------------------------------------


def test_a_variant_brings_its_own_axes(value: ExperimentFile, tmp_path: Path):
    plan = plan_of(value, tmp_path)
    expected = [
        {"data": "rows", "mechanism": "none"},
        {"data": "rows", "mechanism": "random"},
        {"data": "rows", "mechanism": "santext", "epsilon": 1},
        {"data": "rows", "mechanism": "santext", "epsilon": 4},
    ]
    assert axes(plan, "rewritten") == expected
    assert axes(plan, "kept") == expected
    assert axes(plan, "words") == [{"mechanism": "santext", "epsilon": 1}, {"mechanism": "santext", "epsilon": 4}]


def test_an_input_that_is_not_named_is_the_one_behind_the_others(value: ExperimentFile, tmp_path: Path):
    plan = plan_of(value, tmp_path)
    for step in plan.named("kept"):
        assert step.inputs["data"] is step.inputs["texts"].inputs["data"]
        assert step.inputs["texts"].axes == step.axes


def test_own_axes_multiply_those_of_the_inputs(value: ExperimentFile, tmp_path: Path):
    value["steps"]["task"] = {"kind": "downstream", "texts": "rewritten", "learner": "tfidf", "over": {"seed": [1, 2]}}
    plan = plan_of(value, tmp_path)
    assert len(plan.named("task")) == 2 * len(plan.named("rewritten"))


def test_equal_axes_of_two_inputs_are_joined(value: ExperimentFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    both = Kind("both", 1, step_kinds.kinds()["similarity"].parameters, lambda *_: None, lambda _: {},
                {"first": Input(("rewrite",)), "second": Input(("rewrite",))})  # fmt: skip
    known = step_kinds.kinds()
    monkeypatch.setattr(step_kinds, "kinds", lambda: {**known, "both": both})
    value["steps"]["again"] = {**value["steps"]["rewritten"], "seed": 2}
    value["steps"]["compared"] = {"kind": "both", "first": "rewritten", "second": "again"}
    plan = plan_of(value, tmp_path)
    cells = plan.named("compared")
    assert len(cells) == len(plan.named("rewritten"))
    assert all(cell.inputs["first"].axes == cell.inputs["second"].axes for cell in cells)
    value["steps"]["again"]["rename"] = {"mechanism": "other", "epsilon": "other epsilon"}
    assert len(plan_of(value, tmp_path).named("compared")) == len(plan.named("rewritten")) ** 2


def test_only_and_skip(value: ExperimentFile, tmp_path: Path):
    value["steps"]["kept"]["only"] = [{"mechanism": ["none", "santext"]}]
    value["steps"]["kept"]["skip"] = [{"epsilon": 4}]
    assert [a.get("epsilon") for a in axes(plan_of(value, tmp_path), "kept")] == [None, 1]


def test_a_step_of_another_size_is_left_out(value: ExperimentFile, tmp_path: Path):
    value["steps"]["words"]["sizes"] = ["full"]
    assert not plan_of(value, tmp_path).named("words")
    assert plan_of(value, tmp_path, size="full").named("words")


# Keys -------------------------------------------------------------------------------------------------------------


def test_a_changed_parameter_changes_only_what_depends_on_it(value: ExperimentFile, tmp_path: Path):
    before = {step.label: step.key for step in plan_of(value, tmp_path).steps}
    value["variants"]["mechanism"]["santext"]["options"] = {
        **value["variants"]["mechanism"]["santext"]["options"], "punctuation": "drop"
    }  # fmt: skip
    after = {step.label: step.key for step in plan_of(value, tmp_path).steps}
    changed = {label for label in before if before[label] != after[label]}
    assert changed == {label for label in before if "santext" in label}


def test_changed_data_changes_everything_that_reads_it(value: ExperimentFile, tmp_path: Path):
    before = {step.label: step.key for step in plan_of(value, tmp_path).steps}
    with (tmp_path / "rows.csv").open("a") as file:
        file.write("w1 w2,odd,a1\n")
    after = {step.label: step.key for step in plan_of(value, tmp_path).steps}
    assert {label for label in before if before[label] == after[label]} == {
        label for label in before if label.startswith("words")
    }


def test_the_place_of_the_data_does_not_matter(value: ExperimentFile, tmp_path: Path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    write_files(other)
    assert [s.key for s in plan_of(value, other).steps] == [s.key for s in plan_of(value, tmp_path).steps]


def test_a_test_seed_makes_other_releases(value: ExperimentFile, tmp_path: Path):
    secure, test = plan_of(value, tmp_path, test_seed=None), plan_of(value, tmp_path)
    pairs = list(zip(secure.named("rewritten"), test.named("rewritten"), strict=True))
    assert all(a.key != b.key for a, b in pairs)


# What is refused --------------------------------------------------------------------------------------------------


def test_an_epsilon_for_a_mechanism_without_one(value: ExperimentFile, tmp_path: Path):
    value["variants"]["mechanism"]["random"]["over"] = {"epsilon": [1, 2]}
    assert "'random' has no epsilon" in complaint(value, tmp_path)
    value["variants"]["mechanism"]["random"].pop("over")
    value["variants"]["mechanism"]["none"] = {"epsilon": 1.0}
    assert "'none' copies the texts: it has no epsilon" in complaint(value, tmp_path)


def test_a_mechanism_that_needs_an_epsilon(value: ExperimentFile, tmp_path: Path):
    value["variants"]["mechanism"]["santext"].pop("over")
    assert "'santext' needs an epsilon" in complaint(value, tmp_path)


def test_metric_and_plain_epsilon_on_one_axis(value: ExperimentFile, tmp_path: Path):
    options = value["variants"]["mechanism"]["santext"]["options"]
    value["variants"]["mechanism"]["custext"] = {"options": options, "over": {"epsilon": [1, 4]}}
    value["steps"]["rewritten"]["over"]["mechanism"].append("custext")
    figure = {"title": "Kept", "value": "kept.words changed"}
    value["figures"] = [figure]
    said = complaint(value, tmp_path)
    assert "figures.0 ('Kept')" in said
    assert "do not go on one axis" in said
    figure["where"] = {"mechanism": ["santext", "none"]}
    validate(plan_of(value, tmp_path))
    finding = ExperimentFinding(
        "a",
        "b",
        lambda scores: scores.below(
            score("kept.words changed", mechanism="santext"),
            score("kept.words changed", mechanism="custext"),
            each=["epsilon"],
        ),
    )
    assert "do not go on one axis" in complaint(value, tmp_path, finding)


@pytest.mark.parametrize(
    ("check", "fine"),
    [
        (
            lambda scores: scores.above(
                score("kept.BLEU", mechanism="santext", epsilon=4), score("kept.BLEU", mechanism="custext", epsilon=4)
            ),
            False,
        ),
        (
            lambda scores: scores.above(
                score("kept.BLEU", mechanism="santext", epsilon=SMALLEST),
                score("kept.BLEU", mechanism="custext", epsilon=LARGEST),
            ),
            False,
        ),
        (lambda scores: scores.above(score("kept.BLEU", mechanism=("santext", "custext"), epsilon=4), 3), False),
        (lambda scores: scores.increases(score("kept.BLEU", mechanism=("santext", "custext")), along="epsilon"), False),
        (
            lambda scores: scores.increases(
                score("kept.BLEU", mechanism=("santext", "custext")), along="epsilon", each=["mechanism"]
            ),
            True,
        ),
        (
            lambda scores: scores.above(
                score("kept.BLEU", mechanism=("santext", "custext"), epsilon=4), 3, each=["mechanism"]
            ),
            True,
        ),
        (
            lambda scores: scores.above(
                score("kept.BLEU", mechanism="custext", epsilon=4), score("kept.BLEU", mechanism="random")
            ),
            True,
        ),
        (
            lambda scores: scores.above(
                score("kept.BLEU", mechanism="custext", epsilon=4), score("kept.BLEU", mechanism="custext", epsilon=1)
            ),
            True,
        ),
    ],
)
def test_epsilons_that_mean_different_things_are_not_compared(
    check: Judge, fine: bool, value: ExperimentFile, tmp_path: Path
):
    options = value["variants"]["mechanism"]["santext"]["options"]
    value["variants"]["mechanism"]["custext"] = {"options": options, "over": {"epsilon": [1, 4]}}
    value["steps"]["rewritten"]["over"]["mechanism"].append("custext")
    finding = ExperimentFinding("a", "b", check)
    if not fine:
        said = complaint(value, tmp_path, finding)
        assert said.startswith("finding 'a': epsilon per token and unit of distance")
        assert "say with 'mixed' why it makes sense here" in said
        finding = ExperimentFinding("a", "b", check, mixed="the paper compares them so")
    validate(plan_of(value, tmp_path, findings=[finding]))


def test_a_published_table_of_epsilons_that_mean_different_things(value: ExperimentFile, tmp_path: Path):
    options = value["variants"]["mechanism"]["santext"]["options"]
    value["variants"]["mechanism"]["custext"] = {"options": options, "over": {"epsilon": [1, 4]}}
    value["steps"]["rewritten"]["over"]["mechanism"].append("custext")
    table = {"source": "t", "ours": "kept.BLEU", "axes": ["mechanism", "epsilon"], "difference": "d",
             "rows": [["none", "", 9.0], ["santext", 4, 3.0]]}  # fmt: skip
    value["published"] = [table]
    validate(plan_of(value, tmp_path))
    table["rows"] = [["santext", 4, 3.0], ["custext", 4, 5.0]]
    assert "into one comparison" in complaint(value, tmp_path)
    table["mixed"] = "the paper has them in one table"
    validate(plan_of(value, tmp_path))


def test_private_data_where_public_data_is_needed(
    value: ExperimentFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    learn = Kind("learn", 1, step_kinds.kinds()["similarity"].parameters, lambda *_: None, lambda _: {},
                 {"corpus": Input(("data",), public=True)})  # fmt: skip
    known = step_kinds.kinds()
    monkeypatch.setattr(step_kinds, "kinds", lambda: {**known, "learn": learn})
    value["steps"]["model"] = {"kind": "learn", "corpus": "rows"}
    assert "'steps.model.corpus' uses the data set 'rows', which is private" in complaint(value, tmp_path)
    value["data"]["rows"]["access"] = "public"
    plan_of(value, tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "rewrit"}, "'steps.kept.kind' must be one of"),
        ({"texts": "nothing"}, "'steps.kept.texts' must name a rewrite that stands above it (one of rewritten)"),
        ({"texts": "rows"}, "'rows', which is a data step: it must be a rewrite"),
        ({"measures": ["blue"]}, "'steps.kept.measures.0' must be one of"),
        ({"over": {"epsilon": [1]}}, "'steps.kept.over.epsilon' varies something that the step does not have"),
        ({"over": {"part": []}}, "'steps.kept.over.part' must be a list of values"),
        ({"over": {"part": ["test", "test"]}}, "'steps.kept.over.part' must name each value once"),
        ({"over": 3}, "'steps.kept.over' is 3"),
        ({"only": {"epsilon": 1}}, "'steps.kept.only' is {'epsilon': 1}"),
        ({"kind": ""}, "'steps.kept.kind' must be one of"),
        ({"sizes": "full"}, "'steps.kept.sizes' is 'full'"),
        ({"rename": {"nothing": "a"}}, "'steps.kept.rename' names 'nothing'"),
        ({"test_seed": 1}, "give test_seed"),
        ({"only": [{"mechanism": "nobody"}]}, "'steps.kept' has no cells"),
        ({"colour": 1}, "unknown key 'colour' in steps.kept"),
        ({"sizes": ["ful"]}, "'steps.kept.sizes' names 'ful': the sizes are quick, full"),
        (
            {"only": [{"mecanism": "none"}]},
            "'only' and 'skip' leave none of those that there are (data: rows; mechanism: none, random, santext;",
        ),
        (
            {"skip": [{"mecanism": "none"}]},
            "'steps.kept.skip' names the axis 'mecanism', which no size has; did you mean 'mechanism'? there are data,",
        ),
        (
            {"skip": [{"mechanism": ["none", "santex"]}]},
            "'steps.kept.skip' names mechanism = 'santex', which no size has; did you mean 'santext'? there are 'none'",
        ),
        ({"only": [{"epsilon": 4}, {"epsilon": "1"}]}, "names epsilon = '1', which no size has: there are 1, 4"),
        ({"part": "tset"}, "steps.kept: 'part' names the part 'tset', which the data set does not have: it has train"),
    ],
)
def test_wrong_steps(value: ExperimentFile, tmp_path: Path, change: dict[str, object], said: str):
    value["steps"]["kept"].update(change)
    assert said in complaint(value, tmp_path)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"figures": [{"title": "a", "value": "kept.BLEU", "lines": "color"}]}, "is asked about the axis 'color'"),
        ({"figures": [{"title": "a", "value": "kept.BLEU", "kind": "pie"}]},
         "must be one of 'curve', 'heatmap' or 'bars'"),
        ({"published": [{"source": "t", "ours": "kept.BLEU", "axes": ["epsilon"], "rows": [[1]], "difference": "d"}]},
         "each row holds a value for each of epsilon"),
        ({"variants": {"nobody": {"a": {}}}}, "'variants.nobody' is used by no step"),
        ({"experiment": {"reference": {"mecanism": "none"}}},
         "'experiment.reference' names the axis 'mecanism', which no size has; did you mean 'mechanism'?"),
        ({"experiment": {"reference": {"mechanism": "nonne"}}}, "mechanism = 'nonne', which no size has; did you mean"),
        ({"variants": {"mechanism": {"santex": {"options": {}}}}},
         "'variants.mechanism.santex' is for a value of 'mechanism', which no size has; did you mean 'santext'?"),
        ({"figures": [{"title": "a", "value": "kept.BLEUE"}]}, "did you mean 'BLEU'?"),
        ({"figures": [{"title": "a", "value": "kept.BLEU", "where": {"mechanism": ["nobody"]}}]},
         "no cell of 'kept' has mechanism = nobody"),
        ({"published": [{"source": "t", "ours": "kept.bleu", "axes": ["epsilon"], "rows": [[1, 2]],
                         "difference": "d"}]}, "'kept' has no score 'bleu'"),
        ({"published": [{"source": "t", "ours": "kept.BLEU", "axes": ["mechanism"], "rows": [["santex", 2]],
                         "difference": "d"}]}, "did you mean 'santext'?"),
        ({"tables": [{"title": "a", "values": ["kept.BLEU"], "rows": "color"}]}, "is asked about the axis 'color'"),
        ({"tables": [{"title": "a", "values": ["kept.BLUE"]}]}, "did you mean 'BLEU'?"),
        ({"tables": [{"title": "a", "values": ["kept.BLEU"], "labels": ["a", "b"]}]}, "give one for each"),
        ({"sizes": {"full": {"steps": {"kept": {"texts": "nothing"}}}}},
         "sizes.full: 'steps.kept.texts' must name a rewrite"),
    ],
)  # fmt: skip
def test_wrong_parts_of_the_report(value: ExperimentFile, tmp_path: Path, part: dict[str, object], said: str):
    for key, given in part.items():
        if key == "variants":
            given = {axis: {**value[key].get(axis, {}), **tables} for axis, tables in given.items()}
        value[key] = {**value.get(key, {}), **given} if isinstance(given, dict) else given
    assert said in complaint(value, tmp_path)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (lambda scores: scores.above(score("kept.BLEU"), score("kep.y")), "did you mean 'kept'?"),
        (lambda scores: scores.above(score("kept.BLEU"), 1, each=["color"]), "varies over 'color'"),
        (
            lambda scores: scores.above(score("kept.words chnged"), 0),
            "finding 'a': 'kept' has no score 'words chnged'; did you mean 'words changed'? A similarity step has:",
        ),
        (
            lambda scores: scores.above(score("kept.BLEU", mechanism="santex"), 0),
            "no cell of 'kept' has mechanism = santex in any size; did you mean 'santext'?",
        ),
        (
            lambda scores: scores.above(score("kept.BLEU", epsilon=2), 0),
            "no cell of 'kept' has epsilon = 2 in any size: it has 1, 4",
        ),
    ],
)
def test_findings_that_ask_for_what_is_not_there(value: ExperimentFile, tmp_path: Path, judge: Judge, said: str):
    assert said in complaint(value, tmp_path, ExperimentFinding("a", "b", judge))


def test_findings_in_the_file_are_sent_to_their_own(value: ExperimentFile, tmp_path: Path):
    value["findings"] = [{"statement": "a", "source": "b", "check": "kept.BLEU > 0"}]
    assert "_findings.py" in complaint(value, tmp_path)


def test_a_check_may_ask_for_what_only_another_size_has(value: ExperimentFile, tmp_path: Path):
    value["sizes"] = {"full": {"variants": {"mechanism": {"santext": {"over": {"epsilon": [1, 2, 4]}}}}}}
    findings = [
        ExperimentFinding("a", "b", lambda scores: scores.above(score("kept.BLEU", epsilon=2.0), 0)),
        ExperimentFinding("a", "b", lambda scores: scores.at_least(score("kept.BLEU.floor", epsilon=LARGEST), 0)),
    ]
    # A paper has more rows than we run.
    rows = [["santext", 3, 0.5], ["another system", "", 0.5]]
    value["published"] = [{"source": "t", "ours": "kept.BLEU", "axes": ["mechanism", "epsilon"], "rows": rows,
                           "difference": "d"}]  # fmt: skip
    validate(plan_of(value, tmp_path, findings=findings))


def test_what_chooses_cells_may_name_what_only_another_size_has(value: ExperimentFile, tmp_path: Path):
    value["variants"]["mechanism"]["custext"] = {"options": {}, "over": {"epsilon": [2]}}
    value["steps"]["kept"]["skip"] = [{"mechanism": "custext"}, {"epsilon": 2}, {"seed": 2}]
    more = {"over": {"mechanism": ["none", "random", "santext", "custext"], "seed": [1, 2]}}
    value["sizes"] = {"full": {"steps": {"rewritten": more}}}
    validate(plan_of(value, tmp_path))


def test_a_seed_of_the_noise_from_a_variant(value: ExperimentFile, tmp_path: Path):
    value["variants"]["mechanism"]["random"]["test_seed"] = 1
    assert "give test_seed to the command" in complaint(value, tmp_path)


# What does not go with the data -----------------------------------------------------------------------------------


def step(kind: str, **rest: object) -> dict[str, object]:
    return {"kind": kind, **rest}


ATTRIBUTES = {"texts": "rewritten", "attack": "attributes"}
NETWORK = {"data": "rows", "model": "nobody/nothing", "epsilon": 1.0}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (step("attack", **ATTRIBUTES, column="age"),
         "'column' names the column 'age', which the data set does not keep: add it to 'keep' there (it keeps writer)"),
        (step("attack", **ATTRIBUTES, column="writer", author="name"), "'author' names the column 'name'"),
        (step("attack", texts="rewritten", attack="linkage", part="dev"), "the part 'dev', which the data set does"),
        (step("memorize", texts="rewritten", corpus="rows", part="dev"), "'part' names the part 'dev'"),
        (step("memorize", texts="rewritten", corpus="rows", pretraining_part="dev"), "'pretraining_part' names"),
        (step("rewrite", data="rows", mechanism="none", parts=["tran"]), "'parts' names the part 'tran'"),
        (step("downstream", texts="rewritten", learner="tfidf", train="trn"), "'train' names the part 'trn'"),
        (step("downstream", texts="rewritten", learner="tfidf", test="train"), "both the part 'train'"),
        (step("graph", data="rows", method="majority"), "'files.nodes' of the data set is missing: add it"),
        (step("train", **NETWORK, task="pairs"), "'pairs' reads 2 of the columns, and 'text' of the data set names 1"),
        (step("train", **NETWORK, test="dev"), "'test' names the part 'dev'"),
        (step("tune", data="rows", strategy="foo"), "there is no strategy 'foo': choose full"),
        (step("tune", texts="rewritten", train="dev"), "'train' names the part 'dev'"),
        (step("statistics", mechanism="none"), "'none' is no word mechanism"),
    ],
)  # fmt: skip
def test_a_step_that_does_not_go_with_its_data(
    value: ExperimentFile, tmp_path: Path, step: dict[str, object], said: str
):
    value["steps"]["asked"] = step
    message = complaint(value, tmp_path)
    assert message.startswith("steps.asked: ")
    assert said in message


@pytest.mark.parametrize("kind", ["downstream", "train", "tune"])
@pytest.mark.parametrize(("missing", "said"), [("task", "no task"), ("label", "names no label")])
def test_data_without_a_task_or_a_label(kind: str, missing: str, said: str, value: ExperimentFile, tmp_path: Path):
    del value["data"]["rows"][missing]
    value["steps"]["asked"] = step(kind, data="rows", **({"epsilon": 1.0} if kind == "train" else {}))
    assert said in complaint(value, tmp_path)


def test_a_part_that_is_not_rewritten(value: ExperimentFile, tmp_path: Path):
    value["steps"]["rewritten"]["parts"] = ["train"]
    assert "steps.kept: 'part' names the part 'test', which is not rewritten" in complaint(value, tmp_path)


def test_the_words_of_a_mechanism_for_whole_documents(value: ExperimentFile, tmp_path: Path):
    value["variants"]["mechanism"]["dp-bart"] = {"over": {"epsilon": [100]}}
    value["steps"]["rewritten"]["over"]["mechanism"] = ["none", "random", "santext", "dp-bart"]
    value["steps"]["inverted"] = step("attack", texts="rewritten", attack="inversion")
    assert "steps.inverted: the attack 'inversion' is about words, and 'dp-bart'" in complaint(value, tmp_path)
    value["steps"]["inverted"]["skip"] = [{"mechanism": "dp-bart"}]
    value["steps"]["late"] = step("similarity", texts="rewritten", part="dev")
    assert "steps.late: 'part'" in complaint(value, tmp_path)  # the next complaint: this one is gone


def test_vectors_for_a_learner_that_reads_words(value: ExperimentFile, tmp_path: Path):
    value["steps"]["noisy"] = step("perturb", data="rows", mechanism="laplace", epsilon=1.0)
    value["steps"]["learned"] = step("perturbed_task", vectors="noisy", learner="probe")
    assert "the learner 'probe' reads words, and 'laplace' without a mapping" in complaint(value, tmp_path)
    value["steps"]["learned"] |= {"learner": "pooled", "target": "age"}
    assert "'target' names the column 'age'" in complaint(value, tmp_path)


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        ({"rows": 16}, {"rows": 8, "skip": 15}, "have rows of one file in common"),
        ({"rows": 16}, {"rows": 8}, "have rows of one file in common"),
        ({}, {"rows": 8, "skip": 16}, "have rows of one file in common"),
        ({"rows": 16}, {"rows": 8, "skip": 16, "seed": 1}, "and both the same 'seed'"),
        ({}, {"where": {"label": "odd"}}, "have rows of one file in common"),
        ({"where": {"label": "even"}}, {"where": {"label": "odd"}}, None),
        ({"rows": 16}, {"skip": 16}, None),
        ({"rows": 16}, {"skip": 24}, "the part 'test' has no rows: none matches after the 24 that are skipped"),
        ({"rows": 16}, {"skip": 16, "where": {"label": "neither"}}, "the part 'test' has no rows"),
        ({"where": {"label": "neither"}}, {"where": {"label": "odd"}}, "the part 'train' has no rows: none matches"),
    ],
)
def test_rows_of_parts(
    train: dict[str, object], test: dict[str, object], said: str | None, value: ExperimentFile, tmp_path: Path
):
    value["data"]["rows"]["parts"] = {"train": {"file": "rows.csv", **train}, "test": {"file": "./rows.csv", **test}}
    if said is None:
        validate(plan_of(value, tmp_path))
    else:
        message = complaint(value, tmp_path)
        assert message.startswith("data.rows: ")
        assert said in message


def test_parts_with_other_names_that_overlap(value: ExperimentFile, tmp_path: Path):
    value["data"]["rows"]["parts"] |= {"all": {"file": "rows.csv"}}
    validate(plan_of(value, tmp_path))
    value["steps"]["task"] = step("downstream", texts="rewritten", learner="tfidf", train="all")
    assert "steps.task: the parts 'all' and 'test' have rows of one file in common" in complaint(value, tmp_path)


def test_similarities_that_are_words(value: ExperimentFile, tmp_path: Path):
    value["data"]["rows"] |= {"task": "similarity", "text": ["text", "writer"]}
    said = complaint(value, tmp_path)
    assert "data.rows: not all labels of the part 'train' are numbers" in said
    assert "odd" not in said


# Figures of steps that are wrong themselves -----------------------------------------------------------------------


def test_a_wrong_epsilon_is_said_as_without_the_figure(value: ExperimentFile, tmp_path: Path):
    value["figures"] = [{"title": "Kept", "value": "kept.words changed"}]
    santext = {"options": value["variants"]["mechanism"]["santext"]["options"]}
    value["variants"]["mechanism"] = {"none": {}, "santext": santext}
    value["steps"]["rewritten"]["over"] = {"mechanism": ["none", "santext"], "epsilon": [1, 2]}
    value["steps"]["words"]["epsilon"] = 1.0
    assert "the mechanism 'none' copies the texts: it has no epsilon" in complaint(value, tmp_path)


def test_plain_masking_over_epsilons_with_a_figure(value: ExperimentFile, tmp_path: Path):
    value["data"]["rows"]["access"] = "public"
    over = {"masking": ["plain"], "epsilon": [1.0, 2.0]}
    value["steps"]["masked"] = step("sanitized", data="rows", public="rows", over=over)
    value["figures"] = [{"title": "Loss", "value": "masked.loss at the end", "lines": "masking"}]
    assert 'steps.masked: masking = "plain" rewrites nothing' in complaint(value, tmp_path)
    check_report(plan_of(value, tmp_path))  # by itself it does not ask what such an epsilon means


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "results").glob("*.json")), ids=lambda path: path.stem)
def test_every_score_that_was_ever_made_has_a_name_that_checks_may_use(file: Path):
    for cell in Results.from_json(file.read_text(), file.name).cells:
        for measure in cell.scores:
            check_measure(cell.kind, measure, cell.step)


@pytest.mark.parametrize("file", sorted((ROOT / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_the_reports_of_the_files_that_are_shipped(file: Path):
    experiment = load(file)
    plan = Plan(experiment, "quick", tuple(outline(experiment, "quick")[0]), findings=tuple(load_findings(file)))
    check_choices(plan)
    check_report(plan)


def test_missing_vectors_are_said_before_anything_runs(value: ExperimentFile, tmp_path: Path):
    value["variants"]["mechanism"]["santext"]["options"] = {"vectors": str(tmp_path / "nothing.txt")}
    assert "nothing.txt" in complaint(value, tmp_path)


def test_a_data_set_that_is_not_there(value: ExperimentFile, tmp_path: Path):
    value["data"]["rows"]["parts"]["train"]["file"] = "gone.csv"
    assert "'data.rows.parts.train.file' names the file 'gone.csv'" in complaint(value, tmp_path)
