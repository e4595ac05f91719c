"""The service: started, asked over HTTP, and stopped.

    python examples/07_serve.py [FOLDER]

Starts `tacit serve` on a free port of this machine, sends it two questions of bank customers (made-up messages where
there are no real ones, see real_messages.py), and prints what comes back with its promise. While it runs, the page is
at the printed address.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from real_messages import questions, read_messages
from shell import workplace


def started(folder: Any) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "tacit", "serve", "--port", "0", "--state", str(folder), "--quiet"]
    print(f"$ tacit {' '.join(command[3:])}", flush=True)
    # A key of the ledger for this demonstration only, so that no key file is left in your configuration folder.
    environment = {"TACIT_LEDGER_KEY": secrets.token_hex(32), **os.environ}
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert service.stderr is not None
    for line in service.stderr:
        print(line, end="")
        if found := re.search(r"http://[^ ]+", line):
            await_health(found.group())
            return service, found.group()
    sys.exit(service.wait() or 1)


def await_health(address: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{address}/healthz", timeout=10).close()
            return
        except urllib.error.URLError:
            time.sleep(0.1)
    sys.exit("the service did not answer within ten seconds")


def ask(url: str, message: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps(message).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def main() -> None:
    folder = workplace("serve")
    messages = read_messages(questions(folder))[:2]
    service, address = started(folder)
    try:
        answer = ask(f"{address}/v1/rewrite", {"texts": messages, "mechanism": "santext+", "epsilon": 3})
        for original, private in zip(messages, answer["draws"][0]["texts"], strict=True):
            print(f"\n  sent      {original}\n  received  {private}")
        print(f"\n{answer['guarantee']['sentence']}")
    finally:
        service.terminate()
        service.wait(timeout=30)


if __name__ == "__main__":
    main()
