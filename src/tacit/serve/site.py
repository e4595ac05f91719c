"""The page at `/`, and the reports in a folder: files as they are, with a policy that lets them load nothing else."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote

from starlette.responses import FileResponse, Response

from tacit.serve.answers import ReportFacts
from tacit.serve.answers import Reports as ReportList
from tacit.serve.errors import RequestError, ServiceError
from tacit.serve.examples import SCRIPT as EXAMPLES_SCRIPT
from tacit.serve.gate import REPORT_POLICY, Scope

PAGE: Final = Path(__file__).parent / "page"
TICKET_SECONDS: Final = 600
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL | re.IGNORECASE)


def page_file(name: str) -> Response:
    """A file of the page; only names that are in its folder exist."""
    if name == "examples.js":
        return Response(EXAMPLES_SCRIPT, media_type="text/javascript", headers={"cache-control": "no-cache"})
    known = {str(path.relative_to(PAGE).as_posix()): path for path in PAGE.rglob("*") if path.is_file()}
    if name not in known:
        raise ServiceError(404, RequestError("no-such-address", "there is nothing at this address: the page is at /"))
    return FileResponse(known[name], headers={"cache-control": "no-cache"})


class ReportRoutes:
    """HTML reports of a folder. A page shows them in a frame, which cannot send a key, so the list gives each an
    address with a ticket that works for ten minutes."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._secret = secrets.token_bytes(32)

    def listed(self) -> ReportList:
        return ReportList(reports=[self._entry(name, path) for name, path in sorted(self._files().items())])

    def page(self, name: str) -> Response:
        path = self._files().get(name)
        if path is None:
            raise ServiceError(
                404, RequestError("no-such-report", "there is no report of this name: GET /v1/reports lists them")
            )
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    def has_ticket(self, scope: Scope) -> bool:
        """Whether a request for a report carries a valid ticket, in place of a key."""
        prefix = "/v1/reports/"
        if scope["method"] not in ("GET", "HEAD") or not scope["path"].startswith(prefix):
            return False
        expires, _, seal = parse_qs(scope["query_string"].decode("latin-1")).get("ticket", [""])[0].partition("-")
        name = scope["path"].removeprefix(prefix)
        right = hmac.compare_digest(seal.encode(), self._seal(name, expires).encode())
        return right and expires.isdigit() and int(expires) >= time.time()

    def _files(self) -> dict[str, Path]:
        if self._folder is None or not self._folder.is_dir():
            return {}
        return {path.name: path for path in self._folder.glob("*.html") if path.is_file() and not path.is_symlink()}

    def _entry(self, name: str, path: Path) -> ReportFacts:
        with path.open(encoding="utf-8", errors="replace") as file:
            match = _TITLE.search(file.read(4096))
        title = match[1].strip() if match else path.stem
        expires = str(int(time.time()) + TICKET_SECONDS)
        return ReportFacts(
            name=name,
            title=title,
            kind=kind_of(f"{title} {name}"),
            created=datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
            url=f"/v1/reports/{quote(name)}?ticket={expires}-{self._seal(name, expires)}",
        )

    def _seal(self, name: str, expires: str) -> str:
        return hmac.digest(self._secret, f"{expires} {name}".encode(), hashlib.sha256).hex()


def kind_of(text: str) -> str:
    """The kind of a report (audit, experiment or evaluate), by its title and name."""
    lowered = text.lower()
    return next((kind for kind in ("audit", "experiment") if kind in lowered), "evaluate")
