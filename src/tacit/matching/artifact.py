"""`sketch.tacit`: a released sketch as one file, with its card inside and beside it.

A zip archive of

    sketch.json    version, feature map, labels, step, noise, card, and a digest of everything
    totals.bin     the noisy whole numbers: zigzag-coded, all lowest bytes first (which packs well)
    side.bin       those beside the sums, if there are any
    NAME.npy       arrays of the labels, such as the centers of topics

Reading checks the version and the digest. A file gets its name after its cards: there is never a sketch without one.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.atomic import write_files
from tacit.card import Card
from tacit.errors import BadInputError
from tacit.matching.labels import PublicLabels, rule_from
from tacit.matching.maps import map_from
from tacit.matching.marginals import JointLabels
from tacit.matching.sides import side_size
from tacit.matching.sketch import Sketch
from tacit.matching.sums import MOST_NUMBERS
from tacit.places import refuse_taken_file
from tacit.text.files.partial import storage_error
from tacit.version import __version__

VERSION: Final = 1
HEADER: Final = "sketch.json"
TOTALS: Final = "totals.bin"
SIDE: Final = "side.bin"
LARGEST_HEADER: Final = 1 << 26
DIGEST_PARAMETER: Final = "sketch"
"""The line of a card that names the sketch it belongs to."""


def save_sketch(sketch: Sketch, path: Path, *, force: bool = False) -> Sketch:
    """Write a sketch with its cards (`PATH.card.json`, `PATH.card.md`); the sketch as it is in the file, whose card
    names it by a digest."""
    refuse_taken_file(path, force=force)
    named = _named(sketch)
    cards = {".card.json": named.card.to_json(), ".card.md": named.card.to_markdown()}
    contents = {path.with_name(path.name + ending): text.encode("utf-8") for ending, text in cards.items()}
    try:
        write_files({**contents, path: sketch_bytes(named)})  # the sketch gets its name last
    except OSError as error:
        raise storage_error(error, path) from error
    return named


def sketch_bytes(sketch: Sketch) -> bytes:
    """The bytes of a sketch file; equal sketches have equal bytes."""
    totals, arrays = packed(sketch.totals), _other_files(sketch)
    header: dict[str, object] = {
        "version": VERSION,
        "tacit_version": __version__,
        "map": sketch.feature_map.to_dict(),
        "labels": sketch.rule.to_dict(),
        "shape": list(sketch.totals.shape),
        "step": sketch.step,
        "noise_variance": sketch.noise_variance,
        "card": sketch.card.to_dict(),
    }
    if sketch.text_column or sketch.label_column:
        header["columns"] = {"text": sketch.text_column, "label": sketch.label_column}
    header["digest"] = _digest(header, totals, arrays)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        written = {HEADER: json.dumps(header, indent=1, ensure_ascii=False).encode("utf-8"), TOTALS: totals, **arrays}
        for name, data in written.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)
    return buffer.getvalue()


def read_sketch(path: str | Path) -> Sketch:
    """The sketch in a file."""
    place = Path(path)
    try:
        with zipfile.ZipFile(place) as archive:
            return _sketch_of({entry.filename: _content(archive, entry) for entry in archive.infolist()}, place)
    except FileNotFoundError:
        raise BadInputError("no-such-sketch", "there is no sketch '{path}': check the name", path=place) from None
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadInputError):
            raise
        raise BadInputError(
            "not-a-sketch", "'{path}' is no sketch: make one with 'tacit sketch build'", path=place
        ) from error


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.file_size > (LARGEST_HEADER if entry.filename == HEADER else MOST_NUMBERS * 8):
        raise ValueError("larger than any sketch")
    return archive.read(entry)


def _sketch_of(files: dict[str, bytes], path: Path) -> Sketch:
    header = json.loads(files.pop(HEADER))
    if header["version"] != VERSION:
        raise BadInputError(
            "sketch-version",
            "'{path}' has version {version}, and this Tacit reads version {known}: use a newer Tacit",
            path=path, version=header["version"], known=VERSION,
        )  # fmt: skip
    totals = files.pop(TOTALS)
    if header.pop("digest") != _digest(header, totals, files):
        raise BadInputError(
            "damaged-sketch", "'{path}' was changed after it was made: build or copy it again", path=path
        )
    side = files.pop(SIDE, b"")
    arrays = {name.removesuffix(".npy"): np.load(io.BytesIO(data), allow_pickle=False) for name, data in files.items()}
    feature_map = map_from(header["map"])
    joint = header["labels"]["kind"] == JointLabels.kind
    rule: PublicLabels = JointLabels.from_dict(header["labels"]) if joint else rule_from(header["labels"], arrays)
    shape = (len(rule.names), feature_map.dimension + 1)
    if tuple(header["shape"]) != shape:
        raise ValueError("the sums do not belong to the map")
    beside = unpacked(side, (1, side_size(rule, feature_map)))[0]
    guarantee = Card.from_json(json.dumps(header["card"])).guarantee
    sums = unpacked(totals, shape)
    columns = header.get("columns", {})
    return Sketch(
        feature_map,
        rule,
        sums,
        header["step"],
        header["noise_variance"],
        guarantee,
        beside,
        text_column=columns.get("text", ""),
        label_column=columns.get("label", ""),
    )


def content_digest(sketch: Sketch) -> str:
    """By which a card and a merge know a sketch: a hash of the released numbers and what they mean."""
    facts = {
        "map": sketch.feature_map.to_dict(),
        "labels": sketch.rule.to_dict(),
        "step": sketch.step,
        "noise_variance": sketch.noise_variance,
    }
    return _digest(facts, packed(sketch.totals), _other_files(sketch))


def _named(sketch: Sketch) -> Sketch:
    parameters = {**sketch.guarantee.parameters, DIGEST_PARAMETER: content_digest(sketch)}
    return replace(sketch, guarantee=replace(sketch.guarantee, parameters=parameters))


def _digest(facts: dict[str, object], totals: bytes, arrays: dict[str, bytes]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode("utf-8"))
    for name, data in sorted({TOTALS: totals, **arrays}.items()):
        digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:32]


def _other_files(sketch: Sketch) -> dict[str, bytes]:
    files = {SIDE: packed(sketch.side)} if len(sketch.side) else {}
    for name, array in sketch.rule.arrays().items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        files[f"{name}.npy"] = buffer.getvalue()
    return files


# Whole numbers as bytes ---------------------------------------------------------------------------------------------


def packed(totals: Integers) -> bytes:
    """Whole numbers as bytes: near zero first (0, -1, 1, -2, …), then all first bytes, all second ones and so on."""
    flat = totals.reshape(-1).astype(np.int64)
    zigzag = ((flat << 1) ^ (flat >> 63)).view(np.uint64).astype("<u8")
    planes = zigzag.view(np.uint8).reshape(-1, 8).T
    return np.ascontiguousarray(planes).tobytes()


def unpacked(data: bytes, shape: tuple[int, int]) -> NDArray[np.int64]:
    """The whole numbers of `packed`."""
    planes = np.frombuffer(data, dtype=np.uint8).reshape(8, shape[0] * shape[1])
    zigzag = np.ascontiguousarray(planes.T).view("<u8").reshape(shape).astype(np.uint64)
    return np.asarray((zigzag >> np.uint64(1)).view(np.int64) ^ -(zigzag & np.uint64(1)).view(np.int64))
