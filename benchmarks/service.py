"""`tacit serve` under load, against the same calls in one process.

    python benchmarks/service.py                    throughput and latency, 64 clients, 1 and 32 texts per request
    python benchmarks/service.py --minutes 10       mixed load: memory of the service, errors

A load generator in its own process keeps 64 connections open, each with one request at a time (raw sockets and
ready-made requests, so that it is not the bottleneck). The service writes every release into its ledger, as always.
The baseline calls `Mechanism.rewrite` with the same number of texts per call, one call after the other.

On a busy machine wall time says little; CPU seconds of the service stand beside it (all its threads, the HTTP part
included, and without those of the generator).
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

CLIENTS = 64
EPSILON = 4.0
GOALS = "goals: at least 70 % of in-process, p99 below 20 x median, no errors, memory growth below 5 %"
TICK = os.sysconf("SC_CLK_TCK")


def sentences(count: int = 4_000) -> list[str]:
    """Short real texts: SST-2."""
    root = Path(os.environ.get("TACIT_DATA", Path(__file__).parents[2] / "shared" / "data"))
    path = root / "sst2" / "train.tsv.gz"
    if not path.exists():
        sys.exit(f"needs {path}: set TACIT_DATA to the folder of the data sets")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        next(file)
        return [line.split("\t")[0] for line, _ in zip(file, range(count), strict=False)]


# The service --------------------------------------------------------------------------------------------------------


class Service:
    """`tacit serve` as a process of its own, in a state folder of its own."""

    def __init__(self, folder: Path, *more: str) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
                       "TACIT_LEDGER_KEY": "a key for a benchmark only"}  # fmt: skip
        command = [sys.executable, "-m", "tacit", "serve", "--port", "0", "--state", str(folder), "--quiet", *more]
        self.log = (folder / "log.txt").open("w+")
        self.process = subprocess.Popen(command, stderr=self.log, env=environment)
        self.port = self._port()

    def _port(self) -> int:
        for _ in range(600):
            found = re.search(r"http://127\.0\.0\.1:(\d+)", Path(self.log.name).read_text())
            if found:
                return int(found[1])
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"the service did not start: {Path(self.log.name).read_text()}")

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024  # type: ignore[index]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)
        self.log.close()


# The load generator -------------------------------------------------------------------------------------------------


def request(path: str, body: Any, method: str = "POST") -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


def upload(texts: list[str], settings: dict[str, Any]) -> bytes:
    """A job: a small file and its settings, as a form."""
    parts = (
        ('name="settings"', json.dumps({**settings, "columns": ["text"]})),
        ('name="file"; filename="texts.txt"', "\n".join(texts)),
    )
    body = "".join(f"--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{data}\r\n" for head, data in parts)
    data = f"{body}--x--\r\n".encode()
    head = "POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: multipart/form-data; boundary=x\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


async def answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    """Status and size of one answer; its body is read and thrown away."""
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    length = re.search(rb"content-length: (\d+)", head)
    if length is not None:
        await reader.readexactly(int(length[1]))
        return status, int(length[1])
    size = 0
    while chunk := int((await reader.readuntil(b"\r\n")).strip(), 16):  # chunked
        await reader.readexactly(chunk + 2)
        size += chunk
    await reader.readexactly(2)
    return status, size


async def load(port: int, requests: list[bytes], seconds: float, clients: int) -> dict[str, Any]:
    """Every client sends one of the requests after the other until the time is over."""
    times: list[float] = []
    statuses: Counter[int] = Counter()
    stop = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = number
        while time.perf_counter() < stop:
            started = time.perf_counter()
            writer.write(requests[turn % len(requests)])
            status, _ = await answer(reader)
            times.append(time.perf_counter() - started)
            statuses[status] += 1
            turn += clients
        writer.close()

    started = time.perf_counter()
    outcomes = await asyncio.gather(*(client(number) for number in range(clients)), return_exceptions=True)
    broken = sum(isinstance(outcome, BaseException) for outcome in outcomes)
    return {
        "seconds": time.perf_counter() - started,
        "requests": len(times),
        "errors": broken + sum(count for status, count in statuses.items() if status not in (200, 202)),
        "median": statistics.median(times) if times else 0.0,
        "p99": statistics.quantiles(times, n=100)[98] if len(times) > 1 else 0.0,
        "cpu": time.process_time(),
    }


def generate(port: int, mechanism: str, texts: int, seconds: float, clients: int) -> dict[str, Any]:
    """The generator in a process of its own."""
    command = [sys.executable, __file__, "--generate", json.dumps([port, mechanism, texts, seconds, clients])]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def rewrite_requests(mechanism: str, texts: int) -> list[bytes]:
    everything = sentences()
    groups = [everything[start : start + texts] for start in range(0, len(everything) - texts + 1, texts)]
    common = {"mechanism": mechanism, "epsilon": EPSILON}
    return [
        request("/v1/rewrite", {"text": some[0], **common} if texts == 1 else {"texts": some, **common})
        for some in groups
    ]


# The baseline -------------------------------------------------------------------------------------------------------


def in_process(mechanism: str, texts: int, seconds: float) -> dict[str, float]:
    """Texts per second of `Mechanism.rewrite`, called with `texts` texts at a time, without the guarantee, which the
    service makes once as well."""
    from tacit.catalog import build
    from tacit.noise.source import Source

    chosen = build(mechanism, {"epsilon": EPSILON})
    chosen.prepare()
    everything = sentences()
    chosen.rewrite_texts(everything[:200], Source.from_os())
    done, turn = 0, 0
    cpu, wall = time.process_time(), time.perf_counter()
    while time.perf_counter() - wall < seconds:
        some = everything[turn : turn + texts]
        chosen.rewrite_texts(some, Source.from_os())
        done += len(some)
        turn = (turn + texts) % (len(everything) - texts)
    return {"wall": done / (time.perf_counter() - wall), "cpu": done / (time.process_time() - cpu)}


def baseline(mechanism: str, texts: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, __file__, "--baseline", json.dumps([mechanism, texts, seconds])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout))


# Programs -----------------------------------------------------------------------------------------------------------


def throughput(mechanisms: list[str], seconds: float, clients: int) -> dict[str, Any]:
    """Print the table, and return its numbers."""
    measurements: list[dict[str, Any]] = []
    table = Table(title=f"tacit serve, {clients} clients, epsilon {EPSILON:g}, SST-2 sentences")
    for heading in ("mechanism", "texts per request", "in process, texts/s (per CPU s)", "service, texts/s (per CPU s)",
                    "ratio wall", "ratio CPU", "median ms", "p99 ms", "p99/median", "errors"):  # fmt: skip
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        service = Service(Path(folder))
        facts = {"start seconds": time.perf_counter() - start, "start CPU seconds": service.cpu_seconds()}
        try:
            for mechanism in mechanisms:
                for texts in (1, 32):
                    generate(service.port, mechanism, texts, 2.0, clients)  # load the mechanism, warm up
                    base = baseline(mechanism, texts, seconds)
                    cpu = service.cpu_seconds()
                    found = generate(service.port, mechanism, texts, seconds, clients)
                    cpu = service.cpu_seconds() - cpu
                    done = found["requests"] * texts
                    wall_rate, cpu_rate = done / found["seconds"], done / cpu
                    measurements.append(
                        {
                            "mechanism": mechanism, "texts per request": texts, "texts per second": wall_rate,
                            "texts per CPU second": cpu_rate, "in process": base, "median seconds": found["median"],
                            "p99 seconds": found["p99"], "errors": found["errors"],
                        }
                    )  # fmt: skip
                    table.add_row(
                        mechanism, str(texts), f"{base['wall']:,.0f} ({base['cpu']:,.0f})",
                        f"{wall_rate:,.0f} ({cpu_rate:,.0f})", f"{wall_rate / base['wall']:.0%}",
                        f"{cpu_rate / base['cpu']:.0%}", f"{1000 * found['median']:.1f}", f"{1000 * found['p99']:.1f}",
                        f"{found['p99'] / found['median']:.1f}", str(found["errors"]),
                    )  # fmt: skip
        finally:
            service.stop()
    console = Console(width=160)
    console.print(table)
    console.print(GOALS)
    return {**facts, "measurements": measurements}


def mixed(minutes: float, clients: int) -> None:
    """Requests of all kinds for a while, with more mechanisms than the service keeps loaded. Loading and dropping them
    makes memory go up and down, so medians are compared, of the second fifth of the time (warm) and of the last."""
    console = Console(width=160)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        try:
            rounds = max(10, round(minutes * 2))
            memory: list[int] = []
            errors = requests = 0
            for number in range(rounds):
                found = generate(service.port, "mixed", number, 60 * minutes / rounds, clients)
                memory.append(service.memory())
                errors, requests = errors + found["errors"], requests + found["requests"]
                ratio = found["p99"] / found["median"]
                console.print(f"{number + 1}/{rounds}: {memory[-1] / 1e6:.0f} MB, {requests:,} requests, "
                              f"{errors} errors, p99/median {ratio:.1f}")  # fmt: skip
        finally:
            service.stop()
    fifth = max(1, rounds // 5)
    first, last = statistics.median(memory[fifth : 2 * fifth]), statistics.median(memory[-fifth:])
    console.print(
        f"memory, median of the second fifth of the time {first / 1e6:.0f} MB, of the last fifth {last / 1e6:.0f} MB: "
        f"{last / first - 1:+.1%}; {errors} errors in {requests:,} requests"
    )
    console.print(GOALS)


def mixed_requests(seed: int) -> list[bytes]:
    chance = random.Random(seed)
    everything = sentences()
    requests = []
    for _ in range(600):
        mechanism = chance.choice(["santext", "custext", "santext+", "tem"])
        common = {"mechanism": mechanism, "epsilon": chance.choice([2.0, 4.0, 8.0])}
        start = chance.randrange(len(everything) - 40)
        kind = chance.random()
        if kind < 0.6:
            requests.append(request("/v1/rewrite", {"text": everything[start], **common}))
        elif kind < 0.9:
            some = everything[start : start + chance.randrange(2, 33)]
            requests.append(request("/v1/rewrite", {"texts": some, "tokens": chance.random() < 0.5, **common}))
        elif kind < 0.95:
            requests.append(request("/v1/rewrite", {"texts": everything[start : start + 8], "stream": True, **common}))
        elif kind < 0.96:
            asked = {"mechanism": "santext", "document_epsilon": 200.0, "tokens": chance.randrange(5, 30)}
            requests.append(request("/v1/calibrate", asked))
        elif kind < 0.965:
            requests.append(upload(everything[start : start + 40], common))
        elif kind < 0.975:
            requests.append(request("/v1/mechanisms", None, "GET"))
        elif kind < 0.98:
            requests.append(request("/v1/ledger", None, "GET"))
        else:
            requests.append(request("/metrics", None, "GET"))
    return requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanisms", default="santext,santext+,custext")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--minutes", type=float, help="mixed load for so long, instead of throughput")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the throughput to this file as well")
    parser.add_argument("--generate", help=argparse.SUPPRESS)
    parser.add_argument("--baseline", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.generate:
        port, mechanism, texts, seconds, clients = json.loads(given.generate)
        requests = mixed_requests(texts) if mechanism == "mixed" else rewrite_requests(mechanism, texts)
        print(json.dumps(asyncio.run(load(port, requests, seconds, clients))))
    elif given.baseline:
        print(json.dumps(in_process(*json.loads(given.baseline))))
    elif given.minutes:
        mixed(given.minutes, given.clients)
    else:
        facts = throughput(given.mechanisms.split(","), given.seconds, given.clients)
        if given.json is not None:
            given.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
