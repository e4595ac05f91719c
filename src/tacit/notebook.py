"""Pages of Tacit inside a notebook."""

from __future__ import annotations

from tacit.templates import rendered


def framed(page: str, title: str) -> str:
    """A whole HTML page as a part of another one: in a frame, so that neither changes how the other looks, and without
    permission to run anything."""
    return rendered("frame.html", page=page, title=title)
