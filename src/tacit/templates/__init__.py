"""HTML from the templates in this folder. Everything that a template prints is escaped, unless the template says that
it is markup already."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **values: object) -> str:
    """The template of this name, filled with the values.

    >>> rendered("frame.html", page="<p>Hello</p>", title="A page")[:39]
    '<iframe srcdoc="&lt;p&gt;Hello&lt;/p&gt'
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    # Loaded with the first page: most commands show none, and their start should not wait for it.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tacit", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
