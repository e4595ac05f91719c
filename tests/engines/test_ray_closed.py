"""A Ray that we start is closed: it listens on the loopback address only, and lets nobody in without our token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.engines.cluster import session
from tacit.errors import MissingExtraError, TacitError

ROOT = Path(__file__).parents[2]

WATCH = """
import json, os, subprocess, sys
import psutil
from tacit.engines.cluster import session

with session.cluster(None, 1) as started:
    started.ray.get(started.ray.remote(lambda: 1).remote())
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    address = started.ray.get_runtime_context().gcs_address
    ask = "import sys; from ray._raylet import GcsClient; GcsClient(address=sys.argv[1]).check_alive([], timeout=5)"

    def answer_of(**more):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RAY_AUTH")}
        command = [sys.executable, "-c", ask, address]
        return subprocess.run(command, env={**clean, **more}, capture_output=True, text=True)

    print(json.dumps({
        "listening": sorted({c.laddr.ip for p in ours for c in p.net_connections("inet") if c.status == "LISTEN"}),
        "names": sorted({p.name() for p in ours}),
        "address": address,
        "with": answer_of(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=session.OUR_TOKEN).returncode,
        "without": answer_of(RAY_AUTH_MODE="disabled").stderr,
        "wrong": answer_of(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN="0" * 64).stderr,
        "left": [name for name in os.environ if name.startswith("RAY_AUTH")],
    }))
"""


def test_b9_a_ray_that_we_start_is_closed() -> None:
    """The sockets of all its processes, and what it answers to somebody with, without and with a wrong token, even if
    the user's environment would switch tokens off."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'tacit-dp[ray]'")
    pytest.importorskip("psutil")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run([sys.executable, "-c", WATCH], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert {"gcs_server", "raylet"} <= set(seen["names"])
    assert set(seen["listening"]) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert seen["address"].startswith("127.0.0.1:")
    assert seen["with"] == 0
    assert "InvalidAuthToken" in seen["without"]
    assert "InvalidAuthToken" in seen["wrong"]
    assert seen["left"] == ["RAY_AUTH_MODE"], "the environment is as it was"


def test_b9_a_ray_without_tokens_is_refused() -> None:
    for version in ("2.10.0", "2.58.1", "1.99", "2.9"):
        with pytest.raises(MissingExtraError, match=r"needs Ray 2\.59 or newer.*pip install 'tacit-dp\[ray\]'"):
            session._check_version(version)
    for version in ("2.59.0", "2.60.0", "3.0.0rc1"):
        session._check_version(version)


def test_b9_a_ray_that_would_listen_on_the_network_gets_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Listening:
        class util:  # noqa: N801
            get_node_ip_address = staticmethod(lambda: "192.0.2.7")

    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(TacitError, match="it would listen on the network: set RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0"):
        session._check_closed(Listening())
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(TacitError, match="without a token"):
        session._check_closed(Listening())
