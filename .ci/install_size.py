#!/usr/bin/env python3
"""What takes the space of an environment: the table that `make release` prints, and the limit that it keeps.

    install_size.py ENVIRONMENT [--most MB]     ends with 1 if the environment takes more than that many MB on disk

Sizes are those of the disk, as `du -m` counts them: whole blocks, MB of 1,048,576 bytes, rounded up for the whole.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from pathlib import Path

BLOCK = 512
"""Bytes of the unit in which a file says how much of the disk it takes."""
MB = 1 << 20
ROWS = 14
TESTS = "tests inside packages"
BYTECODE = "compiled code (.pyc)"


def taken(path: Path) -> int:
    """Bytes on the disk of one file or folder, without what is in the folder."""
    return path.lstat().st_blocks * BLOCK


def by_package(packages: Path) -> Counter[str]:
    """Bytes of each package of a site-packages folder; libraries beside a package count as its own."""
    sizes: Counter[str] = Counter()
    for path in packages.rglob("*"):
        name = path.relative_to(packages).parts[0]
        sizes[name.removesuffix(".libs") if "-info" not in name else "descriptions of packages"] += taken(path)
    return sizes


def by_kind(package: Path) -> Counter[str]:
    """Bytes of one package: its code, its compiled code, and each folder of other files."""
    sizes: Counter[str] = Counter()
    for path in package.rglob("*"):
        if path.suffix == ".pyc":
            sizes[BYTECODE] += taken(path)
        elif path.is_dir() or path.suffix == ".py":
            sizes["code"] += taken(path)
        else:
            sizes[str(path.parent.relative_to(package))] += taken(path)
    return sizes


def across(packages: Path) -> Counter[str]:
    """Bytes of what all packages bring that no user needs: compiled code (which saves time) and tests."""
    sizes: Counter[str] = Counter()
    for path in packages.rglob("*"):
        if path.suffix == ".pyc":
            sizes[BYTECODE] += taken(path)
        if "tests" in path.relative_to(packages).parts:
            sizes[TESTS] += taken(path)
    return sizes


def print_rows(title: str, sizes: Counter[str], rows: int = ROWS) -> None:
    print(f"\n{title}")
    largest = sizes.most_common(rows)
    for name, size in largest:
        print(f"  {size / MB:8.1f} MB  {name}")
    rest = sum(sizes.values()) - sum(size for _, size in largest)
    if rest:
        print(f"  {rest / MB:8.1f} MB  all others")


def main() -> int:
    parser = argparse.ArgumentParser(description="What takes the space of an environment.")
    parser.add_argument("environment", type=Path)
    parser.add_argument("--most", type=float, help="the largest size in MB that is fine")
    options = parser.parse_args()
    (packages,) = options.environment.glob("lib/python*/site-packages")
    total = math.ceil((taken(options.environment) + sum(map(taken, options.environment.rglob("*")))) / MB)
    print_rows("Packages", by_package(packages))
    print_rows("Of tacit", by_kind(packages / "tacit"))
    print_rows("Of all packages together, counted above", across(packages))
    limit = "" if options.most is None else f" (at most {options.most:g})"
    print(f"\nThe whole environment: {total} MB{limit}")
    if options.most is not None and total > options.most:
        print("It is too large: the tables say what takes the space.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
