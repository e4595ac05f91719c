"""A search for settings by private trials, of which the best is kept and nobody learns how many there were.

How many trials there are, and which setting each takes, follows from a secret key that is drawn once and destroyed at
the end. Every trial is a whole training by the same plan (`training.search_plan`), whose card is the card of the
search; its score comes from public rows, or is a count of right predictions on the private records with noise, which
the plan pays for. The model with the best score is moved to the output folder, and all others are removed.

A count. Right predictions among the first `MOST_COUNTED` records: one record more or less moves it by at most 1, and so
does a record in place of another. Every record is predicted by itself, so that no prediction depends on another record.

Kept while it runs, in `search` of the private folder: the key, the scores, the best model so far and the unfinished
one, so that a stopped search goes on where it was. Afterwards nothing is left but the chosen model: no log, no name, no
number says how many trials there were. The time that the search took does.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.account.release_charge import ReleaseCharge
from tacit.atomic import write_file
from tacit.devices import device_named
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.predictions import main_score
from tacit.jobs.train import TrainConfig
from tacit.jobs.training.records import Records, read_records, run_of
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.jobs.training.running import charging_run, read_rows, score_section, scores_of
from tacit.jobs.tuning import Tuning
from tacit.lineage import CARD
from tacit.noise.kept_key import check_private_folder, erase, keep_key, kept_key
from tacit.noise.normal import normal_noise
from tacit.noise.source import KEY_BYTES, StreamKey
from tacit.training.checkpoint import RunState, read_guarantee, run_state
from tacit.training.gradients import Checked
from tacit.training.plan import check_composed
from tacit.training.prediction import load_trained, predict_rows
from tacit.training.private_folder import (
    holds_something,
    private_folder,
    refuse_private_part,
    remove_training,
    remove_unused,
)
from tacit.training.run import StepReport, digest_of
from tacit.training.search_plan import SearchPlan
from tacit.training.step import NotFiniteError
from tacit.training.tasks import Row, Task
from tacit.training.team import Team

SEARCH: Final = "search"
KEY, STATE = "search.key", "search.json"
COUNTED_TASKS: Final = ("classify", "tag", "answer")
WITHOUT_TEST: Final[Mapping[str, object]] = {"test": None, "group_column": None, "by_class": False}
"""The settings of a trial: only the released model is scored on test rows."""
MOST_COUNTED: Final = 2_000
LEAST_COUNT_NOISE: Final = 10.0
COUNT_NOISE_SHARE: Final = 0.005
"""Of the counted records: the deviation of the noise of a count, if that is more than the least one."""


def train_by_search(config: TrainConfig, progress: TrainingProgress) -> TrainingResult:
    """The best model of a secret number of trials, in the folder of a configuration, with one card for all of them."""
    tuning: Tuning = config.tune
    if Team.from_environment().size > 1:
        raise BadParameterError(
            "search-in-a-team", "a search runs in one process: start it without torchrun, or leave out {option.tune}"
        )
    trials = [_trial(config, point) for point in tuning.points]
    records = read_records(config)
    scoring = None if config.tune_rows is None else read_rows(config.tune_rows, config.columns())
    plan = _plan(config, tuning, records, scoring)
    search = _Search(config, trials, records, scoring, plan, progress)
    search.open()
    progress.planned(plan, (_note(tuning, scoring),))
    with charging_run(config, search.private) as search.charge:
        search.reserve()
        return search.run()


def _trial(config: TrainConfig, point: dict[str, object]) -> TrainConfig:
    """The configuration of one setting; a value that does not fit is refused before any trial."""
    values = {name: getattr(config, name) for name in type(config).model_fields}
    changed = {**values, **point, "tune": None, "tune_rows": None, **WITHOUT_TEST, "resume": False}
    unknown = sorted(set(point) - set(values))
    if unknown:
        raise BadParameterError(
            "unknown-option", "{job} has no option '{name}' to tune", job=config.job, name=unknown[0]
        )
    return type(config)(**changed)


def _plan(config: TrainConfig, tuning: Tuning, records: Records, scoring: Sequence[Row] | None) -> SearchPlan:
    from tacit.jobs.training.planning import check_batch

    count = len(records.rows)
    check_batch(count, config.batch)
    if scoring is None and config.task not in COUNTED_TASKS:
        raise BadParameterError(
            "search-without-scores",
            "the predictions of this task are not right or wrong, so they cannot be counted with noise: give public "
            "rows with {option.tune_rows[FILE]}",
        )
    counted = min(count, MOST_COUNTED)
    return SearchPlan.searching(
        epsilon=config.noise_epsilon,
        records=count,
        batch=config.batch,
        epochs=config.epochs,
        law=tuning.law,
        settings=len(tuning.points),
        score_noise=None if scoring is not None else max(LEAST_COUNT_NOISE, COUNT_NOISE_SHARE * counted),
        delta=config.chosen_delta,
        adjacency=config.adjacency,
        releases=config.trials,
    )


def _note(tuning: Tuning, scoring: Sequence[Row] | None) -> str:
    by = "a noisy count of right predictions" if scoring is None else f"{len(scoring):,} public rows"
    return (
        f"a search among {len(tuning.points):,} settings, scored by {by}: the number of trials is drawn at random "
        f"({tuning.law.label}) and kept secret"
    )


@dataclass
class _Finished:
    """The scores of the trials so far, in their order; the place of the best one, if any has a model."""

    scores: list[float]

    @property
    def best(self) -> int | None:
        """The first trial with the best score; one that left the numbers has no model."""
        if not self.scores or max(self.scores) == -math.inf:
            return None
        return self.scores.index(max(self.scores))


class _OneTrial(TrainingProgress):
    """The progress of a trial, which shows that something is going on and nothing else; every remark once."""

    def __init__(self, shown: TrainingProgress) -> None:
        self._shown = shown
        self._said: set[str] = set()

    def prepared(self, done: int, total: int) -> None:
        self._shown.searching()

    def stepped(self, now: StepReport) -> None:
        self._shown.searching()

    def remarked(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._shown.remarked(message)

    def warned(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._shown.warned(message)


class _Search:
    def __init__(
        self,
        config: TrainConfig,
        trials: Sequence[TrainConfig],
        records: Records,
        scoring: Sequence[Row] | None,
        plan: SearchPlan,
        progress: TrainingProgress,
    ) -> None:
        self.config, self.trials, self.records, self.scoring, self.plan = config, trials, records, scoring, plan
        self.progress = _OneTrial(progress)
        self.folder = config.output
        self.private = private_folder(config.output)
        self.place = self.private / SEARCH
        self.charge = ReleaseCharge()

    def reserve(self) -> None:
        """Set the budget of the whole search aside; one that is refused before its first trial leaves nothing."""
        promised = self.plan.guarantee(
            steps=self.plan.steps, secure=self.config.seed is None, what="a search for settings", parameters={},
            trials=self.config.trials,
        )  # fmt: skip
        try:
            self.charge.reserve(promised)
        except BaseException:
            if not self.config.resume:
                remove_unused(self.folder)
            raise

    # Begin and go on ------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin in an empty folder, or go on with an unfinished search."""
        if self.place.exists() and not (self.place / KEY).exists():
            shutil.rmtree(self.place)  # it had ended, and was stopped while it was tidied up
        unfinished = (self.place / STATE).exists()
        if self.config.resume:
            if not unfinished:
                raise BadInputError(
                    "no-unfinished-run",
                    "there is no unfinished run in {folder}: start one without {option.resume}",
                    folder=self.folder,
                )
            check_private_folder(self.place)
            self.key = StreamKey(kept_key(self.place / KEY, KEY_BYTES), secure=self.config.seed is None)
            self.finished = self._read()
            return
        if unfinished:
            raise BadInputError(
                "unfinished-run",
                "there is an unfinished run in {folder}: go on with {option.resume}, or give another folder",
                folder=self.folder,
            )
        if holds_something(self.folder):
            raise BadInputError("folder-not-empty", "{folder} is not empty: give another folder", folder=self.folder)
        refuse_private_part(self.folder)
        for folder in (self.place.parent, self.place):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_private_folder(self.place)
        self.key = StreamKey.from_os() if self.config.seed is None else StreamKey.from_test_seed(self.config.seed)
        keep_key(self.place / KEY, self.key.key)
        self.finished = _Finished([])
        self._write()

    def _described(self) -> dict[str, object]:
        """The settings that must be the same for a search to go on. A trial compares its own with its checkpoint."""
        return {
            "settings": [trial.identity() for trial in self.trials],
            "plan": repr(self.plan),
            "data": digest_of(self.records.rows),
            "public rows": digest_of([*self.records.public, *(self.scoring or ())]),
            "seed": self.config.seed,
        }

    def _write(self) -> None:
        state = {"described": self._described(), "scores": [repr(score) for score in self.finished.scores]}
        write_file(self.place / STATE, json.dumps(state).encode(), private=True)

    def _read(self) -> _Finished:
        kept = json.loads((self.place / STATE).read_text(encoding="utf-8"))
        now = json.loads(json.dumps(self._described()))
        for part, value in now.items():
            if kept["described"].get(part) != value:
                raise BadInputError(
                    "another-run",
                    "the {kind} run in {folder} had another {part}: repeat its command, or start anew in another "
                    "folder",
                    kind="unfinished",
                    folder=self.folder,
                    part=part,
                )
        return _Finished([float(score) for score in kept["scores"]])

    # Trials ---------------------------------------------------------------------------------------------------

    def run(self) -> TrainingResult:
        """All trials to the end, and the best model in the folder of the configuration."""
        count = self.plan.law.draw(self.key.stream(0, b"number of trials"))
        checked: Checked | None = None
        for number in range(len(self.finished.scores), count):
            score, trial_checked = self._carry_out(number)
            checked = checked or trial_checked
            self.finished.scores.append(score)
            self._write()
            self._remove_all_but_best()
        best = self.finished.best
        if best is None:
            self.charge.commit()  # that there is no model is a release, too
            self._close()
            remove_unused(self.folder)
            raise BadInputError(
                "search-without-result",
                "the search has ended without a model: its random number of trials was 0 (which happens in {share:.2g} "
                "of all searches), or no trial stayed within the numbers. Its budget is spent: another search counts "
                "as a second one ({option.trials[2]}); a larger mean or smaller learning rates make this rarer",
                share=self.plan.law.none,
            )
        point = self._point(best)
        self._release(self.place / str(best))
        return self._result(point, checked)

    def _point(self, number: int) -> int:
        """The place of the setting that a trial takes."""
        return int(self.key.stream(number, b"setting").generator.integers(len(self.trials)))

    def _carry_out(self, number: int) -> tuple[float, Checked | None]:
        """The score of a trial, whose model then lies in its folder; and how exact its gradients were."""
        folder = self.place / str(number)
        trial = self.trials[self._point(number)].model_copy(update={"output": folder, "seed": self._seed(number)})
        state = run_state(folder)
        if state is RunState.ABSENT:
            remove_training(folder)  # it may have been stopped before its first checkpoint
        checked = None
        if state is not RunState.FINISHED:
            run = run_of(trial, self.records, self.plan, self.progress)
            run.configuration = {**trial.identity(), "tune": self.config.identity()["tune"]}
            run.prepared = self.progress.prepared
            try:
                run.run(self.progress.stepped, resume=state is RunState.UNFINISHED)
            except NotFiniteError:
                return -math.inf, None
            checked = run.checked
        return self._score(folder, number), checked

    def _seed(self, number: int) -> int | None:
        """None, so that a trial draws a key of its own; with a test seed one that is as public."""
        if self.config.seed is None:
            return None
        return int(self.key.stream(number, b"test seed").generator.integers(2**31))

    def _score(self, folder: Path, number: int) -> float:
        """How good the model of a trial is: on public rows, or a count with noise."""
        task, model, tokenizer = load_trained(folder)
        model.to(device_named(self.config.device))  # type: ignore[arg-type]
        if self.scoring is not None:
            return _public_score(task, self.scoring, predict_rows(task, model, tokenizer, self.scoring))
        rows = self.records.rows[:MOST_COUNTED]
        predicted = predict_rows(task, model, tokenizer, rows, batch=1)
        right = sum(task.is_right(guess, row) for guess, row in zip(predicted, rows, strict=True))
        assert self.plan.score_noise is not None
        noise = float(normal_noise(1, self.key.stream(number, b"score"))[0])
        return float(round(right + self.plan.score_noise * noise))

    def _remove_all_but_best(self) -> None:
        best = self.place / str(self.finished.best)
        for each in self.place.iterdir():
            if each.is_dir() and each not in (best, private_folder(best)):
                shutil.rmtree(each)

    # The end --------------------------------------------------------------------------------------------------

    def _release(self, folder: Path) -> None:
        """Move a trial to the output folder, its card last, and remove everything else. Can be repeated."""
        if folder.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            kept = private_folder(folder)
            if kept.exists():
                for each in list(kept.iterdir()):
                    each.replace(self.private / each.name)
                kept.rmdir()
            for each in sorted(folder.iterdir(), key=lambda path: path.name == CARD):
                each.replace(self.folder / each.name)
        self.charge.commit()
        self._close()

    def _close(self) -> None:
        """Destroy the key and remove everything of the search."""
        erase(self.place / KEY)
        shutil.rmtree(self.place)

    def _result(self, point: int, checked: Checked | None) -> TrainingResult:
        trial = self.trials[point]
        chosen = {name: getattr(trial, name) for name, _ in self.config.tune.settings}
        guarantee = check_composed(read_guarantee(self.folder), self.plan.records)
        scores = None
        if self.records.test is not None:
            task, model, tokenizer = load_trained(self.folder)
            scores = scores_of(task, model, tokenizer, self.records.test)
        return TrainingResult(
            guarantee, self.folder, self.config.task, scores, checked, plan=self.plan,
            configuration={**trial.identity(), "tune": self.config.identity()["tune"]}, chosen=chosen,
        )  # fmt: skip


def _public_score(task: Task, rows: Sequence[Row], predicted: Sequence[str]) -> float:
    truth = [row[task.target] for row in rows] if task.target else list(predicted)
    value = main_score(score_section(task, truth, predicted, title="Scores"))
    if not math.isfinite(value):
        return -1e300  # worse than any number, and still a model
    return -value if task.scored_as == "write" else value  # perplexity: less is better
