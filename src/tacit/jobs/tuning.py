"""The settings among which a private search chooses, as a file or a mapping says them.

    mean = 10                           # trials, on average
    law = "poisson"                     # or "geometric"

    [settings]
    learning_rate = [0.001, 0.003, 0.01]
    bound = [1.0, 3.0]

Each trial takes one value of each setting, at random. Only settings that change nothing of the accounting may stand
there: all trials then have the same promise, which is what the theorem needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer

from tacit.account.selection import TrialLaw
from tacit.errors import BadParameterError
from tacit.jobs.config import quotable, read_mapping

TUNABLE: Final = (
    "learning_rate", "bound", "clipping", "optimizer", "schedule", "strategy", "rank", "label_smoothing", "pooling",
    "length", "public_gradients", "start_seed", "average",
)  # fmt: skip
"""Settings that a trial may vary: none of them changes sampling, steps, noise, records or neighbors."""
MOST_SETTINGS: Final = 10_000


@dataclass(frozen=True)
class Tuning:
    """The law of the number of trials, and the values of each setting."""

    law: TrialLaw = field(default_factory=TrialLaw)
    settings: tuple[tuple[str, tuple[object, ...]], ...] = ()

    @property
    def points(self) -> list[dict[str, object]]:
        """All combinations."""
        names = [name for name, _ in self.settings]
        return [dict(zip(names, values, strict=True)) for values in itertools.product(*(v for _, v in self.settings))]

    def described(self) -> dict[str, object]:
        """The same as a mapping."""
        return {
            "mean": self.law.mean,
            "law": self.law.kind,
            "settings": {name: list(values) for name, values in self.settings},
        }


def read_tuning(given: object) -> Tuning | None:
    """The tuning of a file, of a mapping, or the tuning itself."""
    if given is None or isinstance(given, Tuning):
        return given
    values = dict(given) if isinstance(given, Mapping) else read_mapping(Path(str(given)))
    unknown = sorted(set(values) - {"mean", "law", "settings"})
    if unknown:
        raise BadParameterError(
            "unknown-option",
            "a file of {option.tune} has 'mean', 'law' and a table 'settings', not '{name}'",
            name=quotable(unknown[0]),
        )
    mean = values.get("mean", TrialLaw().mean)
    if isinstance(mean, bool) or not isinstance(mean, int | float):
        raise BadParameterError(
            "impossible-number-of-trials", "the mean number of trials is a number, not '{mean}'", mean=quotable(mean)
        )
    law = TrialLaw(str(values.get("law", TrialLaw().kind)), float(mean))  # type: ignore[arg-type]
    return Tuning(law, _settings(values.get("settings")))


def _settings(given: object) -> tuple[tuple[str, tuple[object, ...]], ...]:
    if not isinstance(given, Mapping) or not given:
        raise BadParameterError(
            "nothing-to-tune",
            "say what to tune: a table 'settings' with lists of values, as in learning_rate = [0.001, 0.003]",
        )
    settings = []
    combinations = 1
    for name, values in given.items():
        if name not in TUNABLE:
            raise BadParameterError(
                "setting-changes-accounting",
                "'{name}' cannot be tuned: all trials must have the same records, sampling, steps and noise, so that "
                "they have the same promise. Tune one of {known}",
                name=quotable(name),
                known=", ".join(TUNABLE),
            )
        if not isinstance(values, list | tuple) or not values:
            raise BadParameterError(
                "nothing-to-tune", "'{name}' needs a list of values, as in {name} = [1, 3]", name=name
            )
        combinations *= len(values)
        settings.append((name, tuple(values)))
    if combinations > MOST_SETTINGS:
        raise BadParameterError(
            "too-many-settings",
            "{combinations:,} combinations are more than a search can look at: name fewer values",
            combinations=combinations,
        )
    return tuple(settings)


TuningOption = Annotated[
    Any,
    BeforeValidator(read_tuning),
    PlainSerializer(lambda tuning: None if tuning is None else tuning.described()),
]
"""A file of settings, a mapping like one, or None."""
