"""`tacit answer`: answers to questions by private vote over disjoint sets of private examples."""

from __future__ import annotations

from collections import Counter

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.synthesize_prompting import stoppable
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.jobs.answer import AnswerConfig, AnswerPlan, run
from tacit.rounding import rounded_up

HELP = """Answer questions with private examples: a public language model reads disjoint sets of them, every set names a
label, and one label is drawn for each question, likelier the more sets have named it.

All questions together cost epsilon; the fewer they are, the more a vote counts. Labels are public. Examples are put
into sets by a secret hash, never by their likeness to a question: that would let one example change many votes.

Example: tacit answer questions.csv --examples tickets.csv --label-column intent --labels refund,delivery --epsilon 2

Example: tacit answer questions.csv --examples mail.csv --label-column team --labels a,b -e 2 --user-column author
--sets users
"""


def answer(config: AnswerConfig, shown: Quiet) -> None:
    with stoppable(), Bars(shown=not shown.quiet) as bars:
        made = run(config, bars.show)
    if isinstance(made, AnswerPlan):
        output_console().print(
            f"epsilon {rounded_up(made.epsilon)}, delta {rounded_up(made.delta)} for {made.questions:,} questions: "
            f"{rounded_up(made.question_epsilon, 3)} each; {made.votes:,} votes, of which {made.even:.3g} more make a "
            "label 2.7 times as likely as another",
            markup=False,
        )
        return
    if not shown.quiet:
        error_console().print(f"{len(made):,} answers -> {made.output}", markup=False)
        for label, count in Counter(made.answers).most_common(10):
            error_console().print(f"  {label}: {count:,}", markup=False)
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


command = command_for("answer", [AnswerConfig, Quiet], answer, help=HELP)
"""The command."""
