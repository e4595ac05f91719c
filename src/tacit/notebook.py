"""Pages of Tacit inside a notebook."""

from __future__ import annotations

import html


def framed(page: str, title: str) -> str:
    """A whole HTML page as a part of another one: in a frame, so that neither changes how the other looks, and without
    permission to run anything."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="{html.escape(title)}" sandbox '
        'style="width:100%;height:32rem;border:1px solid #8884;border-radius:6px"></iframe>'
    )
