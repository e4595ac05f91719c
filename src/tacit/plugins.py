"""Plug-ins: mechanisms, autoencoders, sentence encoders, tasks, data sets and measures of other packages and files.

There are two ways in, and nothing else has to be registered:

* an installed package names its things in entry points of the groups below (in its pyproject.toml,
  `[project.entry-points."tacit.mechanisms"]`);
* the user names a module or a file beside the data: the option `plugin` of the command, the variable
  TACIT_PLUGINS, or `plugins.use("my_mechanism.py")` in Python (`from tacit import plugins`).

Processes that a run starts read the same variable, and get the same import path. A plug-in is code that runs with the
rights of the user: name only files that you trust. A request to a service can name none.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final, Generic, TypeVar, cast

from tacit.errors import BadInputError, BadParameterError, TacitWarning, place_of

MECHANISMS: Final = "tacit.mechanisms"
AUTOENCODERS: Final = "tacit.autoencoders"
ENCODERS: Final = "tacit.encoders"
TASKS: Final = "tacit.tasks"
DATASETS: Final = "tacit.datasets"
MEASURES: Final = "tacit.measures"
GROUPS: Final = (MECHANISMS, AUTOENCODERS, ENCODERS, TASKS, DATASETS, MEASURES)

VARIABLE: Final = "TACIT_PLUGINS"
"""Modules and files, separated as in PATH."""

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Things of one kind by name: those of Tacit, those that were registered, and those of installed packages.

    group     the entry points that are read
    what      a word for one thing, for errors
    own       Tacit's own: name to "module:attribute", imported on first use
    accept    whether a thing is one of this kind
    reserved  names that no plug-in may take
    """

    def __init__(
        self,
        group: str,
        what: str,
        own: Mapping[str, str],
        accept: Callable[[object], bool],
        reserved: Collection[str] = (),
    ) -> None:
        self._group = group
        self._what = what
        self._own = dict(own)
        self._accept = accept
        self._reserved = frozenset(reserved)
        self._registered: dict[str, T] = {}
        self._places: dict[str, str] = {}

    def register(self, name: str, thing: T) -> T:
        """Make a thing known under a name. A module that is imported again may register its own again."""
        if not self._accept(thing):
            raise BadParameterError("not-a-plugin", "'{name}' is no {what}", name=name, what=self._what)
        other = self._registered.get(name)
        elsewhere = name in self._own and self._own[name].partition(":")[0] != getattr(thing, "__module__", None)
        if elsewhere or name in self._reserved or (other is not None and _identity(other) != _identity(thing)):
            raise self._name_taken(name)
        self._registered[name] = thing
        return thing

    def register_place(self, name: str, place: str) -> None:
        """Make a thing known under a name by its place, "module:attribute", which is imported on first use."""
        if name in self._own or name in self._reserved or self._places.get(name, place) != place:
            raise self._name_taken(name)
        self._places[name] = place

    def _name_taken(self, name: str) -> BadParameterError:
        return BadParameterError(
            "name-taken",
            "there is already a {what} '{name}': give the one of the plug-in another name",
            what=self._what,
            name=name,
        )

    def __getitem__(self, name: str) -> T:
        load_named()
        if name not in self._registered:
            if name in self._own:
                self._registered[name] = cast("T", _at(self._own[name]))
            elif name in self._places:
                self.register(name, cast("T", _at(self._places[name])))
            elif name in (points := _points(self._group)):
                self.register(name, cast("T", _loaded(points[name])))
            else:
                raise KeyError(name)
        return self._registered[name]

    def __iter__(self) -> Iterator[str]:
        load_named()
        return iter(dict.fromkeys([*self._own, *sorted({*self._registered, *self._places, *_points(self._group)})]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        load_named()
        return any(name in names for names in (self._own, self._registered, self._places, _points(self._group)))

    def is_own(self, name: str) -> bool:
        """Whether a thing comes with Tacit."""
        return name in self._own

    def of_plugins(self) -> list[str]:
        """The names of all things that do not come with Tacit; none of them is imported for that."""
        return [name for name in self if not self.is_own(name)]

    def imported(self, name: str) -> T | None:
        """A thing that has been imported already; None for one that would have to be."""
        return self._registered.get(name)


def _at(place: str) -> object:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def use(*names: str | Path) -> None:
    """Load plug-ins by module or file, in this process and in those that it starts."""
    known = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    wanted = [str(Path(name).expanduser().resolve()) if _is_place(str(name)) else str(name) for name in names]
    for name in wanted:
        _imported(name)
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*known, *wanted]))


def load_named() -> None:
    """Import everything that TACIT_PLUGINS names; each module once."""
    names = os.environ.get(VARIABLE)
    if names:
        for name in filter(None, names.split(os.pathsep)):
            _imported(name)


@cache
def _load_entry_points(group: str) -> None:
    for point in _points(group).values():
        try:
            point.load()
        except Exception as error:
            # A broken package must not disable the others; an error about a missing plug-in lists those that exist.
            warnings.warn(
                f"the plug-in {_shown(point)} cannot be loaded: {place_of(error)}", TacitWarning, stacklevel=4
            )


def load_group(group: str) -> None:
    """Import all plug-ins that the user named, and those of installed packages in one group."""
    load_named()
    _load_entry_points(group)


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _loaded(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception as error:
        raise BadInputError(
            "broken-plugin",
            "the plug-in {plugin} cannot be loaded ({place}): install what it needs, or uninstall it",
            plugin=_shown(point),
            place=place_of(error),
        ) from error


def _shown(point: EntryPoint) -> str:
    package = "" if point.dist is None else f" of the package {point.dist.name}"
    return f"'{point.name}' ({point.value}){package}"


def source_digest(thing: object) -> str | None:
    """A hash of the file in which a class or function of a plug-in is written, so that results that were made with
    other code are not taken for its own; None for what comes with Tacit, which has versions."""
    module = getattr(thing, "__module__", None) or ""
    if module.partition(".")[0] == "tacit":
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes() if file else module.encode()).hexdigest()[:16]


def _is_place(name: str) -> bool:
    return name.endswith(".py") or "/" in name or os.sep in name


_finished: set[str] = set()


def _imported(name: str) -> None:
    if name in _finished:
        return
    module = _on_the_path(Path(name)) if _is_place(name) else name
    try:
        importlib.import_module(module)
    except BadInputError:
        raise
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise BadInputError(
            "unknown-plugin",
            "there is no module '{name}' for {option.plugin}: give the name of an installed module, or a file that "
            "ends in .py",
            name=name,
        ) from None
    _finished.add(name)


def _on_the_path(place: Path) -> str:
    """The name under which a file (or the folder of a package) can be imported, in other processes as well: its folder
    is put at the end of the import path, where it hides nothing."""
    path = place.expanduser().resolve()
    if not path.exists():
        raise BadInputError(
            "unknown-plugin", "there is no file '{name}' for {option.plugin}: check the name", name=str(place)
        )
    name = path.stem if path.is_file() else path.name
    if not name.isidentifier():
        raise BadInputError(
            "plugin-name",
            "'{name}' cannot be imported under its name: call the file of a plug-in by letters, digits and _ only",
            name=path.name,
        )
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
        importlib.invalidate_caches()
    spec = importlib.util.find_spec(name)
    origin = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
    if origin not in (path, path / "__init__.py"):
        raise BadInputError(
            "plugin-name",
            "another module is called '{module}' like the plug-in '{name}': rename the file",
            module=name,
            name=path.name,
        )
    return name


def _identity(thing: object) -> object:
    if isinstance(thing, type):
        return thing.__module__, thing.__qualname__
    return thing
