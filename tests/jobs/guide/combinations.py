"""All combinations of answers to the questions of the guide, and files to give them for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.jobs.guide.questions import Purpose, Reader, Secret

COLUMNS = "customer,topic,message\n"
LABELS = ("refund", "late")


def answers() -> Iterator[dict[str, Any]]:
    """Every combination of answers that a rule or a command can depend on."""
    for secret, reader, purpose, per_person, labels, epsilon in itertools.product(
        Secret, Reader, Purpose, (None, 1, 20), ((), LABELS), (None, 0.7)
    ):
        given = {"protect": secret, "seen_by": reader, "purpose": purpose}
        more = {"rows_per_person": per_person, "labels": labels, "epsilon": epsilon}
        yield {**given, **{name: value for name, value in more.items() if value}}


def write_files(folder: Path, rows: int = 30) -> dict[str, Path]:
    """A file with texts, labels and persons; one of texts alone; public text."""
    table, lines, public = folder / "my tickets.csv", folder / "diary.txt", folder / "faq.csv"
    table.write_text(COLUMNS + "".join(f"c{row % 7},refund,where is my money {row}\n" for row in range(rows)))
    lines.write_text("".join(f"a day like any other {row}\n" for row in range(rows)))
    public.write_text("id,question\n" + "".join(f"{row},how do I pay in {row} parts\n" for row in range(rows)))
    return {"table": table, "lines": lines, "public": public}
