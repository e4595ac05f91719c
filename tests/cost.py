"""What the suite costs: seconds of processor time by file, worker processes and commands that it started included.

python -m pytest -n 2 --dist loadscope -p tests.cost

Processor time says more than time on the clock, which depends on what else the machine does.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator

import pytest

SECONDS = "processor seconds"
SHOWN = 40

_before: dict[str, float] = {}
_by_file: defaultdict[str, float] = defaultdict(float)


def spent() -> float:
    """Seconds of this process and of all that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _before[item.nodeid] = spent()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((SECONDS, spent() - _before.pop(item.nodeid)))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        seconds = dict(report.user_properties)[SECONDS]
        assert isinstance(seconds, float)
        _by_file[report.nodeid.partition("::")[0]] += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _by_file:
        return
    terminalreporter.section("processor time by file")
    for file, seconds in sorted(_by_file.items(), key=lambda pair: -pair[1])[:SHOWN]:
        terminalreporter.line(f"{seconds:8.1f} s  {file}")
    terminalreporter.line(f"{sum(_by_file.values()):8.1f} s  all {len(_by_file)} files")
