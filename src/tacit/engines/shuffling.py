"""Rows in a secret random order: `rewrite` with `shuffle`, and the second promise that follows from it.

The order is one uniform permutation of all rows, drawn from the key of the job, so a run that was stopped and resumed
has one order only. Until the output gets its name the rows stand in their old order in the unfinished file; whoever
sees that file has the local promise, and nothing more. The unfinished file is removed when the output is complete.

Rows are put in order in passes over the finished file, each of which keeps `PASS_ROWS` rows in memory, so a file may be
larger than the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.errors import BadInputError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit
from tacit.noise.source import StreamKey
from tacit.text.files import STANDARD_STREAM, FileFormat, RowEncoder, open_table

if TYPE_CHECKING:
    from tacit.arrays import Integers
    from tacit.engines.job import RewriteJob

PASS_ROWS: Final = 1 << 20
BLOCK_ROWS: Final = 4_096
ORDER_INDEX: Final = 1 << 63
"""The stream of the order; blocks have smaller numbers."""
NOBODY_SAW = "nobody saw the rows, or the unfinished file, before they were shuffled"
ONE_EACH = "every record was released once, with noise of its own"


def shuffle_needs_local_engine() -> BadInputError:
    """The files of a cluster have an order, and so have the parts of each."""
    return BadInputError("shuffle-on-a-cluster", "{option.shuffle} needs {option.engine[local]}")


def check_shuffle(job: RewriteJob) -> None:
    """Refuse to shuffle where the order would still show, or where no bound is proven."""
    if not job.shuffle:
        return
    if job.keep:
        raise BadInputError(
            "shuffled-and-kept",
            "{option.shuffle} does not go with {option.keep}: columns that are copied can tell which row is whose. "
            "Leave them out, or release labels with noise by {option.randomize}",
        )
    if job.users is not None:
        raise BadInputError(
            "shuffled-users",
            "{option.shuffle} does not go with {option.user_column}: the bound is proven for one row of each person. "
            "Leave one row of each in the file, and the option out",
        )
    if job.output == STANDARD_STREAM:
        raise BadInputError(
            "shuffled-stream", "rows can be shuffled when all are there: name a file with {option.output}"
        )
    promised = job.unit_promise
    local = promised.model is Model.LOCAL and promised.adjacency is Adjacency.ANY_TWO
    if promised.is_private and not (
        local and promised.notion is Notion.PURE and promised.unit in (Unit.DOCUMENT, Unit.RECORD)
    ):
        raise NoGuaranteeError(
            "shuffle-not-proven",
            "{option.shuffle} needs a mechanism with a pure local promise for whole documents, such as 'codebook'",
        )


def shuffled_promise(job: RewriteJob, rows: int) -> Guarantee | None:
    """The promise of the shuffled rows, in the central model; None where nothing is promised at all."""
    from tacit.account.delta import automatic_delta
    from tacit.account.shuffling import blanket_epsilon, clones_epsilon

    record = job.promise()
    if not record.is_private:
        return None
    if job.width > 1 and record.unit is Unit.DOCUMENT:
        record = record.for_group(job.width)
    delta = automatic_delta(rows)
    law = job.mechanism.two_weights()
    if law is None or job.width > 1 or (job.labels is not None and not job.labels.joint):
        epsilon = clones_epsilon(record.exponent(), rows, delta)
        bound = "by clones, for any pure local mechanism (Feldman, McMillan & Talwar 2021)"
    else:
        epsilon = blanket_epsilon(law, rows, delta)
        bound = "privacy blanket of the two-weight law, computed exactly (docs/shuffling.md)"
    return Guarantee(
        notion=Notion.APPROXIMATE,
        epsilon=epsilon,
        delta=delta,
        model=Model.CENTRAL,
        unit=Unit.RECORD,
        adjacency=Adjacency.REPLACE_ONE,
        mechanism=f"{record.mechanism}, rows shuffled",
        parameters={"local epsilon": record.exponent(), "rows": rows, "bound": bound},
        not_covered=("how many rows there are, which is public", *record.not_covered),
        assumptions=(*record.assumptions, NOBODY_SAW, ONE_EACH),
        provenance=record.provenance,
    )


def secret_order(rows: int, key: StreamKey) -> Integers:
    """A uniformly random order of rows: where the row of each place comes from."""
    import numpy as np

    order = key.stream(ORDER_INDEX, b"order of the rows").generator.permutation(rows)
    return np.asarray(order, dtype=np.int64)


def shuffled_file(ready: Path, target: Path, output_format: FileFormat, encoder: RowEncoder, order: Integers) -> None:
    """Write the rows of a finished file to another one in a new order, both as the encoder stores them."""
    with target.open("wb") as file:
        file.write(encoder.head())
        for start in range(0, len(order), PASS_ROWS):
            rows = list(_rows_at(ready, output_format, encoder.columns, order[start : start + PASS_ROWS]))
            for first in range(0, len(rows), BLOCK_ROWS):
                file.write(encoder.block(rows[first : first + BLOCK_ROWS]))


def _rows_at(
    path: Path, output_format: FileFormat, columns: tuple[str, ...], places: Integers
) -> Iterator[list[object]]:
    """The rows of a file at these places, in their order."""
    wanted = set(places.tolist())
    kept: dict[int, list[object]] = {}
    with open_table(str(path), output_format, None if output_format.kind == "txt" else columns) as table:
        for number, (_, values) in enumerate(table.rows()):
            if number in wanted:
                kept[number] = values
    return (kept[place] for place in places.tolist())
