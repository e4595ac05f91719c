"""`--recommend` on commands that release something: the guide's advice for this file, and nothing is run.

What the command already says answers the questions; only the header and the number of rows of the file are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from tacit.cli.generated import SectionedCommand, SectionedOption
from tacit.cli.naming import TERMINAL
from tacit.jobs.config import Group

FLAG: Final = "--recommend"
Given = Mapping[str, Any]
Answers = Callable[[Given], dict[str, object]]


class RecommendingCommand(SectionedCommand):
    """A command that can say which command fits its file, before anything is required of its options."""

    answers: Answers

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if FLAG in args:
            given, _, _ = self.make_parser(ctx).parse_args(self.complete(args))
            recommend(self.answers(given))
            ctx.exit()
        return super().parse_args(ctx, args)


def recommending(command: RecommendingCommand, answers: Answers) -> RecommendingCommand:
    """The command with the option; `answers` turns what is given on its line into answers of the guide."""
    command.answers = answers
    command.params.append(
        SectionedOption(
            [FLAG], is_flag=True, expose_value=False, section=Group.RUN.value,
            help="Show which command fits this file, what it promises and what to expect from it, and run nothing. "
            "Looks at column names and the number of rows only.",
        )
    )  # fmt: skip
    return command


def recommend(answers: Mapping[str, object]) -> None:
    """Show the advice for some answers, and which of them were taken from the command."""
    from tacit.cli.guide import guide_by
    from tacit.jobs.guide.config import GuideConfig

    config = GuideConfig.from_mapping({name: value for name, value in answers.items() if value not in (None, ())})
    shown = [TERMINAL.with_value(name, str(answers[name])) for name in ("protect", "seen_by", "purpose")]
    guide_by(config, f"For {' '.join(shown)}, as this command is for; 'tacit guide' asks, and may find a better one.")


def first(values: Sequence[object] | None) -> object:
    """The first of an option that may be repeated; None if there is none."""
    return values[0] if values else None
