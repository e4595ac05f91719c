"""Rows by prompting, end to end with a tiny model: the card, resuming, users, the ledger, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.account.ledger import open_ledger
from tacit.account.zcdp import epsilon_of_rho, pure_rho
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.documents.language_models.reading import FramedReader
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Notion, Unit
from tacit.jobs import synthesize_prompting
from tacit.jobs.synthesize_prompting import PromptedTexts, PromptingConfig, PromptingPlan
from tacit.noise.source import StreamKey

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

Options = dict[str, Any]

SMALL: Options = {
    "epsilon": 8.0, "rows": 6, "length": 6, "input_tokens": 8, "physical": 8, "candidates": 40,
    "prompt": "{label}: {text}\n", "public_prompt": "{label}:\n", "label_column": "intent",
    "labels": ("music", "travel"), "count_share": 0.2, "shortest": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.documents.test_language_models import bytes_tokenizer, llama

    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = bytes_tokenizer()
    llama(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def rows(count: int = 120) -> list[dict[str, str]]:
    return [
        {"text": f"play song {n}" if n % 2 else f"fly to town {n}", "intent": "music" if n % 2 else "travel",
         "author": f"user {n % 40}"}
        for n in range(count)
    ]  # fmt: skip


def made(tiny: str, output: Path, **changes: object) -> PromptedTexts:
    options: Options = {**SMALL, **changes}
    result = tacit.synthesize(rows(), by="prompting", model=tiny, output=output, **options)
    assert isinstance(result, PromptedTexts)
    return result


def test_rows_with_a_card(tiny: str, tmp_path: Path) -> None:
    result = made(tiny, tmp_path / "out.csv")
    assert 1 <= len(result) <= 6
    assert set(result.columns) == {"text", "intent"}
    assert set(result.columns["intent"]) <= {"music", "travel"}
    promised = Card.from_json((tmp_path / "out.csv.card.json").read_text()).guarantee
    assert (promised.notion, promised.epsilon) == (Notion.APPROXIMATE, 8.0)
    assert (promised.unit, promised.adjacency) == (Unit.RECORD, Adjacency.ADD_REMOVE)
    assert 0 < promised.delta < 1 / 120
    assert "rho of a token" in promised.parameters
    assert any("constant shapes" in line for line in promised.assumptions)
    assert not (tmp_path / "out.csv.resume").exists()


def test_the_promise_covers_what_was_drawn(tiny: str, tmp_path: Path) -> None:
    """Counts and the dearest label together, computed again from the plan of the result."""
    from tacit.training.prompting.law import AveragedLaw

    result = made(tiny, tmp_path / "out.csv")
    spent = max(plan.tokens * AveragedLaw(4.0, 1.0, plan.batch_records).rho(40) for plan in result.plan.labels)
    assert epsilon_of_rho(pure_rho(8.0 * 0.2) + spent, result.guarantee.delta) <= 8.0


def test_users_and_replacing(tiny: str, tmp_path: Path) -> None:
    users = made(tiny, tmp_path / "users.csv", user_column="author", epsilon=16.0, count_share=0.1)
    assert users.guarantee.unit is Unit.USER
    assert sum(plan.batches * plan.batch_records for plan in users.plan.labels) < 80  # 40 users, one row of each
    replaced = made(tiny, tmp_path / "replaced.csv", replace_one=True)
    added = made(tiny, tmp_path / "added.csv")
    assert replaced.guarantee.adjacency is Adjacency.REPLACE_ONE
    assert max(p.batch_records for p in replaced.plan.labels) > max(p.batch_records for p in added.plan.labels)


def test_a_test_seed_repeats_and_promises_nothing(tiny: str, tmp_path: Path) -> None:
    first, second = (made(tiny, tmp_path / name, seed=7) for name in ("a.csv", "b.csv"))
    assert first.columns == second.columns
    assert first.guarantee.notion is Notion.NONE
    assert made(tiny, tmp_path / "c.csv").columns != made(tiny, tmp_path / "d.csv").columns


def test_a_crash_draws_nothing_twice(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the middle, the run goes on with the key and the texts it had; other rows or options are refused."""
    import tacit.jobs.prompted_writing as writing

    output = tmp_path / "out.csv"
    options = SMALL | {"batch_records": 12, "rows": 40}
    whole = writing.write_wave
    calls: list[int] = []

    def breaking(*arguments: object) -> object:
        if calls:
            raise KeyboardInterrupt
        calls.append(1)
        return whole(*arguments)  # type: ignore[arg-type]

    def refusing(*_: object) -> None:
        raise BadInputError("disk-full", "there is no room")

    monkeypatch.setattr(writing, "write_wave", breaking)
    monkeypatch.setattr(writing, "next_wave", lambda start, *_, **__: range(start, start + 1))
    with pytest.raises(KeyboardInterrupt):
        tacit.synthesize(rows(), by="prompting", model=tiny, output=output, **options)
    state = output.with_name("out.csv.resume")
    assert state.stat().st_mode & 0o077 == 0
    header, *pieces = [json.loads(line) for line in state.read_text().splitlines()]
    assert not output.exists()
    finished = [piece["texts"] for piece in pieces if "batch" in piece]
    assert len(finished) == 1

    monkeypatch.setattr(writing, "write_wave", whole)
    with pytest.raises(BadInputError) as again:
        tacit.synthesize(rows(), by="prompting", model=tiny, output=output, **options)
    assert again.value.code == "unfinished-run"
    with pytest.raises(BadInputError) as other_rows:
        tacit.synthesize(rows(118), by="prompting", model=tiny, output=output, resume=True, **options)
    assert other_rows.value.code == "other-rows"
    with pytest.raises(BadInputError) as other_options:
        tacit.synthesize(rows(), by="prompting", model=tiny, output=output, resume=True, **options | {"epsilon": 9.0})
    assert other_options.value.code == "another-run"
    monkeypatch.setattr("tacit.training.prompting.plan.USUAL_SHARE", 0.5)
    with pytest.raises(BadInputError) as other_plan:
        tacit.synthesize(rows(), by="prompting", model=tiny, output=output, resume=True, **options)
    monkeypatch.setattr("tacit.training.prompting.plan.USUAL_SHARE", 0.75)
    assert other_plan.value.code == "other-plan"
    assert state.exists()
    released = writing.write_rows_with_card
    monkeypatch.setattr(writing, "write_rows_with_card", refusing)
    with pytest.raises(BadInputError) as no_room:
        tacit.synthesize(rows(), by="prompting", model=tiny, output=output, resume=True, **options)
    monkeypatch.setattr(writing, "write_rows_with_card", released)
    assert no_room.value.code == "disk-full"
    assert state.exists()

    result = tacit.synthesize(rows(), by="prompting", model=tiny, output=output, resume=True, **options)
    monkeypatch.setattr(StreamKey, "from_os", staticmethod(lambda: None))
    # The same key from the start gives the same rows: nothing depended on where the run had stopped.
    monkeypatch.setattr("tacit.jobs.keyed_draft.secrets.token_bytes", lambda size: bytes.fromhex(header["key"]))
    straight = tacit.synthesize(rows(), by="prompting", model=tiny, output=tmp_path / "straight.csv", **options)
    assert isinstance(result, PromptedTexts)
    assert isinstance(straight, PromptedTexts)
    assert result.columns == straight.columns
    assert not state.exists()


def test_rows_without_a_user_are_refused(tiny: str, tmp_path: Path) -> None:
    """All of them would be taken for one person, who is not there."""
    several = [*rows(), {"text": "play", "intent": "music", "author": " "}]
    with pytest.raises(BadInputError) as refused:
        tacit.synthesize(
            several, by="prompting", model=tiny, output=tmp_path / "o.csv", **SMALL | {"user_column": "author"}
        )
    assert refused.value.code == "no-user"
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:NEW LEDGER")
def test_a_ledger_is_charged_once(tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    ledger = str(tmp_path / "ledger.db")
    with pytest.raises(BadParameterError) as unnamed:
        made(tiny, tmp_path / "out.csv", ledger=ledger)
    assert unnamed.value.code == "dataset-without-name"
    made(tiny, tmp_path / "out.csv", ledger=ledger, dataset="tickets", force=True)
    with open_ledger(ledger) as opened:
        releases = list(opened.releases())
    assert len(releases) == 1


def test_a_plan_costs_nothing(tiny: str, tmp_path: Path) -> None:
    plan = tacit.synthesize(
        rows(), by="prompting", model=tiny, output=tmp_path / "o.csv", dry_run=True, **SMALL | {"rows": 1000}
    )
    assert isinstance(plan, PromptingPlan)
    assert 0 < plan.rows < plan.wanted == 1000
    assert not list(tmp_path.iterdir())


def test_the_command(
    tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(row) for row in rows()]
    Path("in.jsonl").write_text("\n".join(lines))
    options = [
        "--by", "prompting", "in.jsonl", "--model", tiny, "--label-column", "intent", "--labels", "music,travel",
        "-e", "8", "-n", "4", "--length", "6", "--input-tokens", "8", "--physical", "8", "--column", "text",
        "--count-share", "0.2", "--prompt", "{label}: {text}\n", "--public-prompt", "{label}:\n",
    ]  # fmt: skip
    assert run_command(["synthesize", *options, "--dry-run"]) == 0
    assert "buys about" in capsys.readouterr().out
    assert run_command(["synthesize", *options, "-o", "out.csv"]) == 0
    assert Path("out.csv").read_text().startswith("text,intent\n")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"labels": ()}, "labels-public-or-listed"),
        ({"label_column": None}, "labels-without-column"),
        ({"prompt": "no place"}, "prompt-without-place"),
        ({"public_prompt": "with {text}"}, "prompt-without-place"),
        ({"labels": ("music", "music")}, "bad-label-list"),
        ({"logit_bound": 5000.0}, "budget-buys-nothing"),
        ({"count_share": 0.99}, "counts-take-all"),
    ],
)
def test_what_is_refused(tiny: str, tmp_path: Path, changes: Options, code: str) -> None:
    with pytest.raises((BadParameterError, BadInputError)) as refused:
        made(tiny, tmp_path / "out.csv", **changes)
    assert refused.value.code == code
    assert not list(tmp_path.iterdir())


# The reader -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(tiny: str) -> FramedReader:
    from tacit.jobs.prompted_rows import load_reader
    from tacit.jobs.prompted_writing import reader_of

    config = PromptingConfig(data=rows(), model=tiny, **SMALL | {"physical": 4, "length": 3})
    return reader_of(config, load_reader(tiny), "music")


def test_a_row_is_the_same_bit_by_bit_beside_long_texts(reader: FramedReader) -> None:
    """Where no text needs padding, transformers would leave the mask out and compute in another way."""
    long = "a text that is longer than all tokens that are read of it"
    beside = [[long, "b", "", "c d"], [long, long, long, long], [long, "", "", ""]]
    seen = []
    for texts in beside:
        reading = reader.read(texts)
        logits = [reading.logits[0].copy()]
        for token in (1, 2, 3):
            reading.extend(np.full(4, token), np.zeros(4, dtype=bool))
            logits.append(reading.logits[0].copy())
        assert not bool(reading._running.mask.all())
        seen.append(np.stack(logits))
    assert np.array_equal(seen[0], seen[1])
    assert np.array_equal(seen[0], seen[2])


def test_columns_of_finished_texts_are_dropped_without_a_trace(reader: FramedReader) -> None:
    """Texts that begin anew at different times, for longer than the cache: predictions are those of a new reading."""
    texts = ["a", "b c", "", "d"]
    reading = reader.read(texts)
    current: list[list[int]] = [[] for _ in texts]
    widest = 0
    for step in range(14):
        anew = np.array([len(written) == 3 or (step + row) % 4 == 0 for row, written in enumerate(current)])
        tokens = np.array([5 + (step * 3 + row) % 7 for row in range(4)])
        current = [[*([] if new else old), int(t)] for old, new, t in zip(current, anew, tokens, strict=True)]
        reading.extend(tokens, anew)
        widest = max(widest, int(reading._running.mask.shape[1]))
        for row, written in enumerate(current):
            fresh = reader.read(texts)
            for token in written:
                fresh.extend(np.full(4, token), np.zeros(4, dtype=bool))
            assert np.allclose(fresh.logits[row], reading.logits[row], atol=1e-4)
    assert widest == reading._width + 2 * 3


def test_a_file_of_options_runs_it(tiny: str, tmp_path: Path) -> None:
    config = PromptingConfig(data=rows(), model=tiny, output=tmp_path / "out.csv", **SMALL)
    assert tacit.run(config).output == tmp_path / "out.csv"
    assert synthesize_prompting.PromptingConfig.job == "synthesize prompting"
