"""An experiment: mechanisms, epsilons, a task and an attacker in one file, with a page at the end.

    python examples/05_experiment.py [FOLDER]

Checks and runs examples/requests.toml: requests are rewritten at five epsilons; a classifier is trained on each release
and an attacker links it with the originals. What that should show is in examples/requests_findings.py. Stopped in the
middle, the same command goes on where it was.
"""

from __future__ import annotations

import shutil

from assistant_requests import write_requests
from shell import HERE, tacit, workplace


def main() -> None:
    folder = workplace("experiment")
    for file in ("requests.toml", "requests_findings.py"):
        shutil.copy(HERE / file, folder)
    write_requests(folder / "requests.csv")
    tacit(f"experiment run {folder}/requests.toml --check")
    tacit(f"experiment run {folder}/requests.toml -o {folder}/results --cache {folder}/cache --quiet")
    print((folder / "results" / "tables.md").read_text(encoding="utf-8"))
    print(f"The page: {folder}/results/report.html (it quotes original texts: keep it private)")


if __name__ == "__main__":
    main()
