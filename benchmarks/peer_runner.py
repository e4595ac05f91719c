"""Runs one mechanism of a peer package on given tokens. Started by `peers.py` with the peer's own Python, so it imports
nothing but the standard library and the peer.

    PEER_PYTHON peer_runner.py JOB.json RESULT.json
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any


def clock() -> tuple[float, float]:
    """CPU seconds of this process and its finished children, and wall seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system, time.perf_counter()


def mldp_text(job: dict[str, Any]) -> dict[str, Any]:
    import nltk

    nltk.download = lambda *_, **__: False  # the package downloads WordNet when it is imported; not needed here
    import gensim
    import mldp_text as peer

    vectors = gensim.models.KeyedVectors.load_word2vec_format(job["vectors with header"], binary=False)
    start = clock()
    options = dict(job["options"])
    mechanism = peer.get_mechanism(job["mechanism"], epsilon=job["epsilon"], embedding_matrix=vectors, **options)
    ready = clock()
    for token in job["tokens"]:
        mechanism.replace_word(token)
    return costs(start, ready, clock(), len(job["tokens"]))


def pypantera(job: dict[str, Any]) -> dict[str, Any]:
    import importlib

    import pandas

    note = ""
    try:
        importlib.import_module("pypantera")
    except ImportError:
        note = "'import pypantera' fails, its wheel installs the name 'src' instead"
    module, name = job["mechanism"].split(":")
    mechanism_class = getattr(importlib.import_module(f"src.{module}"), name)
    start = clock()
    options = {"embPath": job["vectors without header"], "epsilon": job["epsilon"], **job["options"]}
    mechanism = mechanism_class(options)
    ready = clock()
    size = 20
    texts = [" ".join(job["tokens"][i : i + size]) for i in range(0, len(job["tokens"]), size)]
    mechanism.obfuscateText(pandas.DataFrame({"id": range(len(texts)), "text": texts}), 1)
    return {**costs(start, ready, clock(), len(job["tokens"])), "note": note}


def dp_diffractor(job: dict[str, Any]) -> dict[str, Any]:
    import nltk

    class NoStopWords:
        @staticmethod
        def words(_language: str) -> list[str]:
            return []

    # Its tokenizer and stop words need downloads: cutting at spaces and an empty list stand in, which is faster.
    nltk.corpus.stopwords = NoStopWords
    nltk.word_tokenize = str.split
    import diffractor
    import diffractor.core as core

    core.ensure_embeddings = lambda _names: [job["vectors with header"]]
    start = clock()
    config = diffractor.DiffractorConfig(epsilon=job["epsilon"], verbose=False, replace_stopwords=True)
    mechanism = diffractor.Diffractor(config)
    ready = clock()
    size = 20
    texts = [" ".join(job["tokens"][i : i + size]) for i in range(0, len(job["tokens"]), size)]
    mechanism.start()
    mechanism.rewrite(texts)
    mechanism.close()
    return costs(start, ready, clock(), len(job["tokens"]))


def costs(
    start: tuple[float, float], ready: tuple[float, float], end: tuple[float, float], tokens: int
) -> dict[str, Any]:
    return {
        "preparation": {"cpu": ready[0] - start[0], "wall": ready[1] - start[1]},
        "rewriting": {"cpu": end[0] - ready[0], "wall": end[1] - ready[1]},
        "tokens": tokens,
        "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }


PEERS = {"mldp-text": mldp_text, "pypantera": pypantera, "dp-diffractor": dp_diffractor}


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            result = PEERS[job["peer"]](job)
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
