"""How a run was started (`run.json` in the folder of its results), and whether the same would run now.

A step is known by its parameters, the content of its data and the versions of its code. Where one of these has changed
since the run, its cells are others: a report would replace good results by empty ones, and going on would draw new
noise for texts that have been released. So both ask first.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from tacit.errors import BadInputError
from tacit.experiments.declared import Axes
from tacit.experiments.execution import folder_of, is_finished
from tacit.experiments.plan import Plan
from tacit.experiments.raw import write_json
from tacit.experiments.results import Results
from tacit.version import __version__

FILE = "run.json"
COPY = "experiment.toml"
"""The experiment as it was when the run started."""


class Settings(BaseModel):
    """The settings a run was started with. Places are absolute; `digest` is that of the plan, and `parts` has one for
    each data set and step, so that an error can name those that changed. Older files have neither."""

    model_config = ConfigDict(frozen=True, strict=True)

    file: str
    size: str
    test_seed: int | None
    cache: str
    data: str | None
    only: list[str] | None
    digest: str | None = None
    version: str | None = None
    parts: dict[str, str] = {}

    def of_plan(self, plan: Plan) -> Settings:
        return self.model_copy(update={"digest": plan.digest, "version": __version__, "parts": digests(plan)})


def digests(plan: Plan) -> dict[str, str]:
    """One digest for each data set and each step, which changes with any of its cells."""
    keys = {name: json.dumps([step.key for step in plan.named(name)]) for name in plan.names}
    return {name: hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest() for name, text in keys.items()}


def write_settings(folder: Path, settings: Settings) -> None:
    write_json(folder / FILE, settings.model_dump())


def read_settings(folder: Path) -> Settings:
    if not (folder / FILE).is_file() or not (folder / COPY).is_file():
        raise BadInputError(
            "no-run-there",
            "no run was started in '{folder}': start one with 'tacit experiment run FILE.toml'",
            folder=folder,
        )
    try:
        return Settings.model_validate_json((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        raise BadInputError(
            "unreadable-run",
            "'{file}' does not tell how the run was started: run the experiment again, with "
            "'tacit experiment run FILE.toml -o {folder}'",
            file=folder / FILE,
            folder=folder,
        ) from None


def refuse_changed(folder: Path, settings: Settings, plan: Plan, known: Results | None) -> None:
    """`known` are the results that lie in the folder, if they can be read."""
    digest = settings.digest or (known.digest if known is not None else None)
    if digest is not None and digest != plan.digest:
        raise BadInputError(
            "changed-since-run",
            "{change} since the run in '{folder}', so its cells would be others: run the experiment again into another "
            "folder ({option.output}), or give {option.force} to replace its results",
            change=_changed(settings, plan),
            folder=folder,
        )


def _changed(settings: Settings, plan: Plan) -> str:
    now = digests(plan)
    others = [name for name in dict.fromkeys([*settings.parts, *now]) if settings.parts.get(name) != now.get(name)]
    data = [name for name in others if name in plan.experiment.data]
    if settings.version is not None and settings.version != __version__:
        return f"Tacit has changed from version {settings.version} to {__version__}"
    if settings.parts and data:
        return f"the data set {' and '.join(map(repr, data))} has changed"
    if settings.parts and others:
        # What is made from a changed step changes with it: the first is where it began.
        return f"the step {others[0]!r} has changed (its settings, its files or its code)"
    return "the data, the code or the experiment has changed"


def refuse_lost(folder: Path, plan: Plan, cache: Path, known: Results | None) -> None:
    """Results whose cells have vanished from the cache cannot be made again as they are."""
    kept = {(step.name, _place(step.axes)) for step in plan.steps if is_finished(folder_of(cache, step))}
    finished = [cell for cell in known.cells if cell.finished] if known is not None else []
    lost = sum((cell.step, _place(cell.axes)) not in kept for cell in finished)
    if lost:
        raise BadInputError(
            "cells-lost",
            "{lost} of the {finished} cells with a result in '{folder}' are no longer in the cache '{cache}': put the "
            "cache back, run the experiment again into another folder ({option.output}), or give {option.force} to go "
            "on without them",
            lost=lost,
            finished=len(finished),
            folder=folder,
            cache=cache,
        )


def _place(axes: Axes) -> frozenset[tuple[str, object]]:
    return frozenset(axes.items())
