"""The page against the real service, in a real browser.

Every page that a test opens is watched: a request to another origin, a violation of the content security policy or an
error that nobody caught fails the test that caused it.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.vectors import VectorTable

if TYPE_CHECKING:
    import uvicorn
    from playwright.sync_api import Browser, Page, Route

    from tacit.serve.settings import ServiceSettings

FOLDER = Path(__file__).parents[3] / "src" / "tacit" / "serve" / "page"
WAIT = 120_000
"""Milliseconds until a step counts as failed; only ever used up by a failure."""


@dataclass
class Service:
    """A service on a free port of this machine, in a thread."""

    settings: ServiceSettings
    server: uvicorn.Server | None = None
    address: str = ""
    _thread: threading.Thread | None = None

    def start(self) -> Service:
        import uvicorn

        from tacit.serve.app import create_app

        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        config = uvicorn.Config(create_app(self.settings), log_config=None, access_log=False, ws="none")
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, args=([listening],), daemon=True)
        self._thread.start()
        while not self.server.started and self._thread.is_alive():
            time.sleep(0.02)
        assert self.server.started, "the service did not start"
        return self

    def stop(self) -> None:
        assert self._thread is not None
        self.server.should_exit = True
        self._thread.join(timeout=20)


@dataclass
class Watch:
    """What pages asked for and complained about."""

    origin: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def on(self, page: Page) -> None:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self._console(message.text))

    def _console(self, text: str) -> None:
        if "Content Security Policy" in text or "Refused to" in text or "Uncaught" in text:
            self.complaints.append(text)

    def check(self) -> None:
        abroad = [url for url in self.requests if not url.startswith((self.origin, "blob:" + self.origin, "data:"))]
        assert abroad == []
        assert self.complaints == []


@pytest.fixture(autouse=True, scope="module")
def _ledger_key() -> Iterator[None]:
    """As long as the service of a module runs, so that its ledger finds the same key whenever it is opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
        yield


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tacit.report import Finding, Light, Report, Section
    from tacit.report.page import page

    folder = tmp_path_factory.mktemp("reports")
    section = Section("Checks", "What was done.", (Finding("Exact check", Light.GREEN, "no pair breaks the claim"),))
    (folder / "santext-audit.html").write_text(page(Report("Audit of SanText", [section])), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def service(default_table: VectorTable, reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service without keys; `default_table` skips where the public vectors are not installed."""
    pytest.importorskip("fastapi", reason="the service needs: pip install 'tacit-dp[serve]'")
    pytest.importorskip("uvicorn", reason="the service needs: pip install 'tacit-dp[serve]'")
    from tacit.serve.settings import ServiceSettings

    running = Service(ServiceSettings(state=tmp_path_factory.mktemp("state"), reports=reports)).start()
    yield running
    running.stop()


Opener = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: Browser, service: Service) -> Iterator[Opener]:
    """Opens pages, by default the view of a text. The curve takes seconds to compute and is given a made-up answer
    unless `curve=True`; the view begins word by word, which shows more of it, unless `words=False`."""
    contexts = []
    watches = []

    def opened(
        path: str = "#/text",
        *,
        curve: bool = False,
        words: bool = True,
        address: str | None = None,
        init: Callable[[Page], None] | None = None,
        **kind: object,
    ) -> Page:
        at = address or service.address
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **kind})
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        watch = Watch(at)
        watch.on(page)
        watches.append(watch)
        if words:
            page.route("**/v1/mechanisms", _words_first)
        if not curve:
            page.route("**/v1/curve", _made_up_curve)
        if init is not None:
            init(page)
        page.goto(at + path)
        return page

    yield opened
    for context in contexts:
        for each in context.pages:
            each.unroute_all(behavior="ignoreErrors")  # a request still under way would fail in the next test
        context.close()
    for watch in watches:
        watch.check()


def _words_first(route: Route) -> None:
    answer = route.fetch()
    if not answer.ok:  # a service that asks for a key
        route.fulfill(response=answer)
        return
    catalog = answer.json()
    catalog["default"]["document"] = None
    route.fulfill(json=catalog)


def _made_up_curve(route: Route) -> None:
    epsilons = json.loads(route.request.post_data)["epsilons"]
    points = [
        {"epsilon": epsilon, "changed": 1 / (1 + epsilon**2 / 9), "guessed": 1 - 1 / (1 + epsilon**2 / 9)}
        for epsilon in epsilons
    ]
    route.fulfill(json={"points": points, "how": "made up", "blind": 0.08, "guessed_how": "made up for a test"})


@pytest.fixture
def page(open_page: Opener) -> Page:
    """The page with its example rewritten."""
    opened = open_page()
    opened.wait_for_selector(".result .words")
    return opened


def only_mechanisms(*names: str) -> Callable[[Page], None]:
    """Let a page see some of the mechanisms of the service, as if all that they need were installed."""

    def init(page: Page) -> None:
        def fewer(route: Route) -> None:
            catalog = route.fetch().json()
            chosen = [each for each in catalog["mechanisms"] if each["name"] in names]
            catalog["mechanisms"] = [each | {"available": True, "why_not": None} for each in chosen]
            route.fulfill(json=catalog)

        page.route("**/v1/mechanisms", fewer)

    return init


def epsilons_in(text: str) -> list[float]:
    """The numbers after the word epsilon."""
    return [float(number) for number in re.findall(r"epsilon ([\d.]+)", text)]
