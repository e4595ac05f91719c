"""The command `tacit`. A command's module is imported only when that command is called, so help is instant."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from tacit.cli.naming import TERMINAL
from tacit.errors import PYTHON, MissingExtraError, TacitError, TacitWarning, did_you_mean, place_of
from tacit.loading import collection_paused
from tacit.needs import Ability, ability_of, why_not
from tacit.progress import WorkProgress, listening
from tacit.version import __version__

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "guide": ("tacit.cli.guide", "Start with this: a few questions, and the command that fits."),
    "run": ("tacit.cli.run", "Run a job again, from a file of its options."),
    "rewrite": ("tacit.cli.rewrite", "Rewrite the texts of a file under differential privacy."),
    "embed": ("tacit.cli.embed", "Release vectors of texts under differential privacy."),
    "codebook": ("tacit.cli.codebook", "Build a private codebook from public text, or look into one."),
    "pretrain": ("tacit.cli.pretrain", "Train rewriting models on public text."),
    "vocabulary": ("tacit.cli.vocabulary", "Learn words and a tokenizer from private text."),
    "train": ("tacit.cli.train", "Train a model under differential privacy."),
    "federate": ("tacit.cli.federate", "Train a model under differential privacy for users, not rows."),
    "graph": ("tacit.cli.graph", "Label the nodes of a private graph of texts."),
    "predict": ("tacit.cli.predict", "Use a trained model: predictions and scores."),
    "topics": ("tacit.cli.topics", "Say what private texts are about: topics with noisy counts, as a map and a table."),
    "answer": ("tacit.cli.answer", "Answer questions by private vote over sets of private examples."),
    "decode": ("tacit.cli.decode", "Make a corpus of what many local releases say together, at no cost."),
    "synthesize": ("tacit.cli.synthesize", "Release a corpus with labels that may be shared in place of private rows."),
    "sketch": ("tacit.cli.sketch", "Release noisy sums of private rows, from which a corpus can be made."),
    "pool": ("tacit.cli.pool", "Build a pool of public sentences, or look into one."),
    "evaluate": ("tacit.cli.evaluate", "Measure what released texts are still good for."),
    "audit": ("tacit.cli.audit", "Check a privacy claim, or attack a released file or a trained model."),
    "serve": ("tacit.cli.serve", "Serve the page and the HTTP interface; manage their keys."),
    "experiment": ("tacit.cli.experiment", "Run an experiment file: tables beside the published ones, and a page."),
    "data": ("tacit.cli.data", "List the public data sets of the experiments, and put them in place."),
    "card": ("tacit.cli.card", "Show the privacy card of a folder or file; copy what may leave of a folder."),
    "ledger": ("tacit.cli.ledger", "Show and limit the spent privacy budget; check that nothing was changed."),
    "mechanisms": ("tacit.cli.mechanisms", "List the mechanisms, or explain one."),
    "calibrate": ("tacit.cli.calibrate", "Turn epsilon, delta and sensitivity into noise, and back."),
}
"""Name: module with a `command`, and one line of help. A new command is a new line here."""


class LazyGroup(click.Group):
    """Lists the commands from the table above, and imports one when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in COMMANDS:
            hint = did_you_mean(cmd_name, COMMANDS, otherwise="")
            ctx.fail(f"there is no command '{cmd_name}'{hint} The commands are: {', '.join(COMMANDS)}")
        with collection_paused():
            module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    no_args_is_help=True,
    help="Work with text you are not allowed to show: rewrite it under differential privacy.",
    epilog="'tacit COMMAND --help' explains a command.",
)
@click.option(
    "--plugin",
    multiple=True,
    metavar="MODULE",
    expose_value=False,
    is_eager=True,
    callback=lambda context, option, names: _use_plugins(names),
    help="A module or a .py file with mechanisms, models, tasks, measures or data sets of yours. It is run. May be "
    "repeated; the variable TACIT_PLUGINS does the same.",
)
@click.version_option(__version__, prog_name="tacit", message="%(prog)s %(version)s", help="Show the version and exit.")
def app() -> None:
    return


def _use_plugins(names: Sequence[str]) -> None:
    if names:
        from tacit.plugins import use

        use(*names)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit: 0 done, 2 an error the user can fix, 3 a claim
    refuted or a release refused, 130 stopped with Ctrl-C, 1 anything else."""
    code = run(arguments)
    if arguments is None and "ray" in sys.modules:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End at once. Taking the modules of Ray Data apart one by one would take a second, after everything is done."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", TacitWarning)
            warnings.showwarning = _shown_warning(warnings.showwarning)
            with listening(_announced_work):
                app(args=arguments, prog_name="tacit")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except TacitError as error:
        return _complain(error)
    except ModuleNotFoundError as error:
        ability = ability_of(error.name or "")
        return _unexpected(error) if ability is None else _complain(_missing_library(ability))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; nothing is wrong, and nothing can be said to it any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _unexpected(error)
    return 0


def _announced_work(work: str, done: int, total: int) -> None:
    """A bar for long work that nobody else shows; loaded with the first report."""
    if not _bars:
        from tacit.cli.bars import AnnouncedWork

        _bars.append(AnnouncedWork())
    _bars[0](work, done, total)


_bars: list[WorkProgress] = []


def _shown_warning(usual: Any) -> Any:
    """Our own warnings are one line without the place in the source, which tells a user nothing."""

    def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, TacitWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            usual(message, category, *place, **more)

    return show


def _complain(error: TacitError) -> int:
    stopped = error.exit_code in (0, 130)
    code = f" {_gray(f'[{error.code}]')}" if sys.stderr.isatty() and not stopped else ""
    print(f"{'' if stopped else 'error: '}{error.rendered(TERMINAL)}{code}", file=sys.stderr)
    rendered = error.remarks(PYTHON)
    notes = [note for note in getattr(error, "__notes__", ()) if note not in rendered]
    for line in (*notes, *error.remarks(TERMINAL)):
        print(line, file=sys.stderr)
    return error.exit_code


def _gray(text: str) -> str:
    return text if os.environ.get("NO_COLOR") else f"\x1b[2m{text}\x1b[0m"


def _missing_library(ability: Ability) -> MissingExtraError:
    """A library that nobody missed before the work began: a gap in `Config.needs`, yet an error with a remedy."""
    return why_not("this", [ability]) or MissingExtraError(
        "library-not-importable",
        "a library of the extra '{extra}' cannot be imported",
        extra=ability.extra,
    )


def _unexpected(error: Exception) -> int:
    """A mistake of ours. Its message could quote private text, so only its kind and place are shown."""
    if os.environ.get("TACIT_DEBUG"):
        raise error
    print(
        f"error: unexpected {place_of(error)}. Please report this; "
        "TACIT_DEBUG=1 shows all of it, which can include private text",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    main()
