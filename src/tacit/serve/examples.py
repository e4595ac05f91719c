"""The public texts that the page plays with. Rewriting one of them is charged to nobody: it is about nobody.

Whether a text is one of them is decided here, by comparing it character for character. What a client says about its
text (a data set called "public example", say) has no say in it.
"""

from __future__ import annotations

import json
from typing import Final

EXAMPLES: Final = (
    "My daughter Anna has been at the hospital in Leeds since Tuesday, and the insurance still refuses to pay for her "
    "insulin pump.",
    "The film is slow to begin, but the last half hour in Lisbon is tender, funny and worth every minute of the wait.",
    "Please close the account of Mr. Okafor: his salary of $4,200 was sent to the wrong bank twice this spring.",
)
_PUBLIC: Final = frozenset(EXAMPLES)
SCRIPT: Final = (
    f"// Made by the service from its own list.\nexport const EXAMPLES = {json.dumps(EXAMPLES, indent=1)};\n"
)
"""The same list as the module `examples.js` of the page."""


def is_public(text: str) -> bool:
    return text in _PUBLIC
