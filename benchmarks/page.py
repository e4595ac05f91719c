"""How long the first view of the page takes on this machine, from the click on the address to what is seen.

Starts the service on a free port and opens the page in Debian's Chromium with an empty cache, once to warm the disk and
then `--runs` times. Wall seconds are those of the browser itself (its performance timeline):

    first paint        something is on the screen
    first view         heading, text and controls stand where they stay; the target is 1 s
    ready              mechanisms are in the list and the slider can be used
    example            the public example has been rewritten and is shown with its changed words marked

CPU seconds stand beside them, of all processes of browser and service together from the start of a visit: they mean
the same on a busy machine. The first line is what the browser takes for any page: the service's answer to /healthz.
The browser runs without its GPU process, which on a machine without a GPU would emulate one in software.

    python benchmarks/page.py
    python benchmarks/page.py --runs 30 --json numbers.json
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import Facts, Report, arguments_parser, say, seconds, verdict

TARGETS = {"first view": 1.0}
PAINT = {"first paint": "first-contentful-paint"}
STEPS = ("first paint", "first view", "ready", "example")
MARKS = """
  const done = (name) => performance.mark(name);
  const watch = new MutationObserver(() => {
    if (document.querySelector("#mechanism optgroup") && !performance.getEntriesByName("ready").length) done("ready");
    if (document.querySelector(".result .words") && !performance.getEntriesByName("example").length) done("example");
  });
  document.addEventListener("DOMContentLoaded", () => {
    watch.observe(document.body, { childList: true, subtree: true });
    requestAnimationFrame(() => setTimeout(() => done("first view")));
  });
"""
REACHED = """(name) => performance.getEntriesByName(name).length > 0"""
WALL = """() => Object.fromEntries(
  [...performance.getEntriesByType("paint"), ...performance.getEntriesByType("mark")]
    .map((entry) => [entry.name, entry.startTime / 1000]))"""
LOADED = """() => {
  const loaded = performance.getEntriesByType("resource");
  return { requests: loaded.length + 1, bytes: loaded.reduce((sum, one) => sum + one.transferSize, 0) };
}"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"{address}healthz").close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the service did not start: pip install 'tacit-dp[serve]'")


def cpu_of_children() -> float:
    """CPU seconds of all living descendants of this process."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(path.parent.name)
        parents[number], used[number] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {os.getpid()}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    return sum(used[number] for number in family - {os.getpid()}) / os.sysconf("SC_CLK_TCK")


def visit(browser: Any, address: str, steps: Sequence[str]) -> Facts:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.add_init_script(MARKS)
    before, cpu = cpu_of_children(), {}
    page.goto(address, wait_until="commit")
    for step in steps:
        page.wait_for_function(REACHED, arg=PAINT.get(step, step), polling=5)
        cpu[step] = cpu_of_children() - before
    wall = page.evaluate(WALL)
    found = {"wall": {step: wall[PAINT.get(step, step)] for step in steps}, "cpu": cpu, **page.evaluate(LOADED)}
    page.wait_for_load_state("networkidle")  # the service must not work on the curve of this visit during the next
    context.close()
    return found


def measured(address: str, runs: int) -> tuple[list[Facts], list[Facts]]:
    """Visits to a page of one line and to the page, each without the first one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = shutil.which("chromium") or "/usr/bin/chromium"
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        bare = [visit(browser, f"{address}healthz", STEPS[:1]) for _ in range(runs + 1)][1:]
        found = [visit(browser, address, STEPS) for _ in range(runs + 1)][1:]
        browser.close()
    return bare, found


def row(title: str, visits: list[Facts], step: str) -> list[str]:
    walls = [visit["wall"][step] for visit in visits]
    wall, cpu = statistics.median(walls), statistics.median(visit["cpu"][step] for visit in visits)
    target = TARGETS.get(title)
    wanted = "" if target is None else f"< {target:g} s: {verdict(wall, target)}"
    return [title, seconds(wall), seconds(max(walls)), seconds(cpu), wanted]


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    port = free_port()
    address = f"http://127.0.0.1:{port}/"
    report = Report("page", notes=[f"median of {given.runs} visits with an empty cache"])
    with tempfile.TemporaryDirectory() as state:
        say("starting the service")
        environment = {**os.environ, "TACIT_LEDGER_KEY": "a key for measuring only", "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-m", "tacit", "serve", "--port", str(port), "--state", state, "--quiet"]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            wait_for(address, process)
            say(f"visiting the page {given.runs + 1} times")
            bare, visits = measured(address, given.runs)
        finally:
            process.terminate()
            process.wait()
    rows = [row("a page of one line: first paint", bare, STEPS[0]), *(row(step, visits, step) for step in STEPS)]
    report.facts = {"visits": visits, "a page of one line": bare}
    report.notes.append(f"{visits[0]['requests']} requests, {visits[0]['bytes'] / 1000:.0f} kB")
    report.table("First view", ("until", "wall s", "slowest", "CPU s", "target (wall)"), rows)
    report.show(given.json)


if __name__ == "__main__":
    main()
