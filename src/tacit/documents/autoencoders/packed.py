"""The large files of a model folder in one compressed file, without loss: how models come with Tacit.

Numbers of 16 bits hardly compress as they are: their low bytes are as good as random, their high bytes are not. So the
even and the odd bytes of weights stand apart in the archive. A model is unpacked into a temporary folder while it is
loaded; its record stays as it is, because it is read without loading anything.

    python -m tacit.documents.autoencoders.packed FOLDER...     packs folders that 'tacit pretrain' made
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tacit.documents.autoencoders.weights import damaged_error

PACKED: Final = "model.zip"
LARGE: Final = ("model.safetensors", "tokenizer.json")
SPLIT: Final = ".safetensors"
EVEN, ODD = ".even", ".odd"
OLDEST: Final = (1980, 1, 1, 0, 0, 0)
"""The time of all entries, so that the same files make the same archive."""


def pack(folder: Path) -> None:
    """Replace the large files of a folder by their archive."""
    with zipfile.ZipFile(folder / PACKED, "w", zipfile.ZIP_LZMA) as archive:
        for name in LARGE:
            content = (folder / name).read_bytes()
            parts = {EVEN: content[::2], ODD: content[1::2]} if name.endswith(SPLIT) else {"": content}
            for part, data in parts.items():
                archive.writestr(zipfile.ZipInfo(name + part, OLDEST), data, zipfile.ZIP_LZMA)
    for name in LARGE:
        (folder / name).unlink()


@contextmanager
def unpacked(folder: Path) -> Iterator[Path]:
    """The folder of a model with all its files: itself, or a temporary one if it is packed."""
    if not (folder / PACKED).is_file():
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tacit-model-", ignore_cleanup_errors=True) as place:
        whole = Path(place) / folder.name  # errors name a model by its folder
        shutil.copytree(folder, whole, ignore=lambda _, names: [PACKED] if PACKED in names else [])
        _unpack(folder, whole)
        yield whole


def _unpack(folder: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(folder / PACKED) as archive:
            for name in LARGE:
                if name.endswith(SPLIT):
                    even, odd = archive.read(name + EVEN), archive.read(name + ODD)
                    content = bytearray(len(even) + len(odd))
                    content[::2], content[1::2] = even, odd
                    (target / name).write_bytes(content)
                else:
                    (target / name).write_bytes(archive.read(name))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise damaged_error(folder / PACKED) from error


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        pack(Path(argument))
