"""Work of a cluster for codebooks and evaluations: reading data sets, vectors, measures.

Nothing is released here, so nothing needs a commit (`tacit.engines.cluster.crew`). Over Ray Data go the reading of all
files, and for a codebook the encoding of what is read, by actors that each load the model once. For an evaluation, each
measure of each release is one actor's piece of work.

What comes together in the memory of this process: for a codebook, the public texts and their vectors, since the
sentences are chosen by comparing all of them; for an evaluation, all texts of all files, of which each worker that
measures has a copy of one release and the original. (Here and not with the engine, because the engine imports no
deep-learning library.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats32
from tacit.devices import AUTO, PROCESSOR, computing_on, device_in_use
from tacit.documents.codebook_build import public_form
from tacit.documents.encoder import SentenceEncoder
from tacit.encoders import ENCODERS, Encoder, load_encoder
from tacit.engines.cluster.crew import handed_out, streamed
from tacit.engines.cluster.dataset import SourceFile, find_data_set, opened, unreadable_error
from tacit.engines.cluster.session import Cluster
from tacit.errors import BadInputError, MissingExtraError, TacitError
from tacit.evaluation.rows import TextRows, read_rows
from tacit.evaluation.similarity import measure_similarity
from tacit.evaluation.utility import MeasuredMetric
from tacit.evaluation.vectors import TextVectors
from tacit.progress import StepProgress, WorkProgress
from tacit.text.files import FileFormat, choose_columns, text_value

TEXTS_AT_A_TIME: Final = 1_024


class ClusterEncoder(SentenceEncoder):
    """The sentence encoder, with the texts divided over the actors of a cluster, each with its own copy of the model.

    How they are divided depends on the texts alone, so the vectors do not depend on the number of workers. From those
    of one process they differ by rounding errors only (`tacit.documents.encoder.BATCH_ERROR`). Few texts are encoded
    here.
    """

    def __init__(self, cluster: Cluster, name: str | Path = "minilm") -> None:
        super().__init__(name)
        self._cluster = cluster

    def encode(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32:
        if len(texts) <= TEXTS_AT_A_TIME:
            return super().encode(texts, progress)
        return _divided(self._cluster, self, texts, progress)


class ClusterRegisteredEncoder:
    """A registered encoder ('static', or one of a plug-in), with the texts divided over the actors of a cluster."""

    def __init__(self, cluster: Cluster, encoder: Encoder) -> None:
        self._cluster = cluster
        self._encoder = encoder
        self.name = encoder.name

    @property
    def dimension(self) -> int:
        return self._encoder.dimension

    def encode(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32:
        if len(texts) <= TEXTS_AT_A_TIME:
            return self._encoder.encode(texts, progress)
        return _divided(self._cluster, self, texts, progress)

    def encode_alone(self, text: str) -> Floats32:
        return self._encoder.encode_alone(text)


def cluster_encoder(cluster: Cluster, name: str) -> Encoder:
    """The sentence encoder of that name, with the texts divided over the actors of a cluster."""
    if name in ENCODERS:
        return ClusterRegisteredEncoder(cluster, load_encoder(name))
    return ClusterEncoder(cluster, name)


def _divided(
    cluster: Cluster, encoder: Encoder, texts: Sequence[str], progress: StepProgress | None = None
) -> Floats32:
    """The vectors of texts, computed by the actors."""
    vectors = np.empty((len(texts), encoder.dimension), dtype=np.float32)
    # Texts of one length together: less padding, as in one process.
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    parts = [order[start : start + TEXTS_AT_A_TIME] for start in range(0, len(order), TEXTS_AT_A_TIME)]
    items = [(encoder.name, [texts[place] for place in part], device_of_workers()) for part in parts]
    done = 0
    for number, part_vectors in handed_out(cluster, encoded, items):
        vectors[parts[number]] = part_vectors
        done += len(part_vectors)
        if progress is not None:
            progress(done, len(texts))
    return vectors


def encoded(memory: dict[str, Any], name: str, texts: Sequence[str], device: str = PROCESSOR) -> Floats32:
    """In an actor: the model is loaded with the first texts."""
    with computing_on(device):
        if name not in memory:
            memory[name] = load_encoder(name)
        vectors: Floats32 = memory[name].encode(texts)
    return vectors


def device_of_workers() -> str:
    """The device of models in actors: one that the job names, else the processor. Machines of a cluster differ, so
    "auto" would be another device on each."""
    chosen = str(device_in_use())
    return PROCESSOR if chosen == AUTO else chosen


# Reading ----------------------------------------------------------------------------------------------------------


def read_data_set(
    cluster: Cluster, path: str, columns: Sequence[str] = (), label_column: str | None = None, format: str | None = None
) -> TextRows:
    """The rows of a file or of a folder of files, in the order of their names. Texts, labels and the other columns of
    all files come together here, in the memory of one machine."""
    data = find_data_set(path, format)
    arguments = (tuple(columns), label_column, str(data.format))
    rows_of_file = {file: rows for file, _, rows in streamed(cluster, data.files, _rows_of, arguments)}
    return joined(Path(path.rstrip("/")).name, [rows_of_file[place] for place in range(len(data.files))])


def _rows_of(file: SourceFile, columns: tuple[str, ...], label_column: str | None, format: str) -> Iterator[TextRows]:
    try:
        yield read_rows(file.url, columns, label_column, format)
    except TacitError as error:
        raise unreadable_error(file, error) from None


def joined(name: str, parts: Sequence[TextRows]) -> TextRows:
    """Rows one after the other; columns that only some files have are left out."""
    first = parts[0]
    for part in parts:
        if len(part.texts) != len(first.texts) or (part.labels is None) != (first.labels is None):
            raise BadInputError(
                "files-do-not-agree",
                "'{file}' and '{other_file}' do not have the same columns: the files must agree",
                file=first.name,
                other_file=part.name,
            )
    others = [column for column in first.others if all(column in part.others for part in parts)]
    return TextRows(
        name,
        tuple([text for part in parts for text in part.texts[place]] for place in range(len(first.texts))),
        None if first.labels is None else [label for part in parts for label in part.labels or ()],
        {column: [value for part in parts for value in part.others[column]] for column in others},
    )


# Codebooks --------------------------------------------------------------------------------------------------------


def encoded_texts(
    cluster: Cluster,
    path: str,
    column: str | None = None,
    format: str | None = None,
    encoder: str = "minilm",
    progress: StepProgress | None = None,
) -> tuple[list[str], Floats32]:
    """The texts of one column of a file or of a folder of files, in the order of the files, and the vectors of their
    public form. `progress` hears of bytes.

    Texts that are encoded together lie together in a file, so the vectors do not depend on the number of workers. From
    those of one process they differ by rounding errors only (`tacit.documents.encoder.BATCH_ERROR`).
    """
    data = find_data_set(path, format)
    blocks: dict[tuple[int, int], tuple[list[str], Floats32]] = {}
    done = 0
    work = partial(_with_vectors, encoder=encoder, device=device_of_workers())
    for file, number, (texts, vectors, size) in streamed(
        cluster, data.files, _texts_of, (column, data.format, TEXTS_AT_A_TIME), work
    ):
        blocks[file, number] = texts, vectors
        done += size
        if progress is not None:
            progress(min(done, data.size), data.size)
    return _in_order(blocks)


def _in_order(blocks: dict[tuple[int, int], tuple[list[str], Floats32]]) -> tuple[list[str], Floats32]:
    """Pieces put together; each is given up when it is copied, so that memory holds the vectors about once."""
    if not blocks:
        return [], np.empty((0, 0), dtype=np.float32)
    width = next(iter(blocks.values()))[1].shape[1]
    texts: list[str] = []
    vectors = np.empty((sum(len(some) for some, _ in blocks.values()), width), dtype=np.float32)
    for place in sorted(blocks):
        some, rows = blocks.pop(place)
        vectors[len(texts) : len(texts) + len(some)] = rows
        texts += some
    return texts, vectors


def _texts_of(
    file: SourceFile, column: str | None, format: FileFormat, together: int
) -> Iterator[tuple[list[str], int]]:
    """The texts of a file, some at a time, with how many bytes of the file they took."""
    try:
        with opened(file, format) as table:
            names = choose_columns(table.columns, () if column is None else (column,), ()).texts
            table.select(names)
            rows = (text_value(value, row, names[0]) for row, values in table.rows() for value in values)
            before = 0
            while texts := list(islice(rows, together)):
                yield texts, table.bytes_read() - before
                before = table.bytes_read()
    except TacitError as error:
        raise unreadable_error(file, error) from None


def _with_vectors(
    memory: dict[str, Any], piece: tuple[list[str], int], *, encoder: str, device: str
) -> tuple[list[str], Floats32, int]:
    texts, size = piece
    return texts, encoded(memory, encoder, [public_form(text) for text in texts], device), size


# Measuring --------------------------------------------------------------------------------------------------------


def measure_releases(
    cluster: Cluster,
    original: Sequence[str],
    releases: dict[str, Sequence[str]],
    metrics: Sequence[str],
    *,
    encoder: str,
    language_model: str,
    limit: int,
    progress: WorkProgress | None = None,
) -> dict[tuple[str, str], MeasuredMetric]:
    """Every metric of every release, each by one worker: the same functions and numbers as in one process."""
    before = cluster.ray.put(list(original))
    after = {name: cluster.ray.put(list(texts)) for name, texts in releases.items()}
    pairs = [(name, metric) for name in releases for metric in metrics]
    device = device_of_workers()
    items = [(before, after[name], metric, encoder, language_model, limit, device) for name, metric in pairs]
    measured: dict[tuple[str, str], MeasuredMetric] = {}
    for place, result in handed_out(cluster, _measured, items):
        measured[pairs[place]] = result
        if progress is not None:
            progress("measures", len(measured), len(pairs))
    return measured


def _measured(
    memory: dict[str, Any],
    original: Sequence[str],
    released: Sequence[str],
    metric: str,
    encoder: str,
    language_model: str,
    limit: int,
    device: str = PROCESSOR,
) -> MeasuredMetric:
    with computing_on(device):
        vectors = memory.setdefault(encoder, TextVectors(encoder))
        try:
            similarity = measure_similarity(
                original, released, (metric,), vectors=vectors, language_model=language_model, limit=limit,
                perplexity_limit=min(limit, 200),
            )  # fmt: skip
        except MissingExtraError as error:
            return [], MissingExtraError.of(error)
    return list(similarity.measures), None
