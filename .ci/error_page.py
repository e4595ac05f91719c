"""docs/errors.md from the source: every code of an error with its sentences, its classes and the modules it comes from.

python .ci/error_page.py          writes the page
python .ci/error_page.py --check  fails if the page is not what the source says
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tacit.errors import NO_SUCH_CHOICE, check_choice

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "src" / "tacit"
PAGE: Final = ROOT / "docs" / "errors.md"

CHECK_OF_A_CHOICE: Final = check_choice.__name__

AREAS: Final = (
    ("Files, columns and texts", ("text", "labels", "atomic", "places")),
    ("Options and configurations", ("jobs", "cli", "parameters", "plugins", "catalog", "mechanism", "integrations")),
    ("Libraries that are not installed", ("needs", "errors")),
    ("Guarantees and cards", ("guarantee", "card", "lineage")),
    ("The ledger and accounting", ("account",)),
    ("Noise", ("noise",)),
    ("Word vectors and word-level mechanisms", ("vectors", "words")),
    ("Document-level mechanisms and their models", ("documents",)),
    ("Vectors in place of texts", ("embeddings",)),
    ("Sketches, pools and matching", ("matching", "encoders")),
    ("Training", ("training", "devices")),
    ("Audits", ("auditing", "checks")),
    ("Evaluation and reports", ("evaluation", "report")),
    ("Runs, workers and clusters", ("engines",)),
    ("Experiments", ("experiments",)),
    ("The service", ("serve",)),
)

INTRODUCTION: Final = """# Errors by code

<!-- Made by `python .ci/error_page.py` from the source: change the errors, then run it. -->

Every error that a user can act on has a code, which names its cause and does not change, and one sentence that says
what is wrong and what to do next. Programs look at the code and the named fields, never at the sentence:

```python
from tacit.errors import BadInputError

try:
    tacit.rewrite("reviews.csv", columns="body", epsilon=2)
except BadInputError as error:
    print(error.code, dict(error.fields))  # no-such-column {'column': 'body', ...}
```

A terminal shows the code in gray behind the sentence. The service sends it as `cause`, beside `fields`, in its JSON
errors; `code` there is the kind of refusal, such as `bad_parameter`. Names in braces stand for what an error fills in;
names in bold are options, which a terminal shows as flags.
"""


@dataclass(frozen=True)
class Site:
    """One place that makes an error."""

    code: str
    sentence: str
    kind: str
    module: str

    @property
    def area(self) -> str:
        room = self.module.split(".")[1]
        return next(title for title, rooms in AREAS if room in rooms)


def error_classes(trees: dict[str, ast.Module]) -> set[str]:
    """Names of TacitError and of all classes that come from it."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    known = {"TacitError"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def variants(node: ast.expr) -> list[str]:
    """The sentences that an expression can be; what only the run knows is an ellipsis."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.IfExp):
        return variants(node.body) + variants(node.orelse)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [before + after for before in variants(node.left) for after in variants(node.right)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(variants(part)[0] for part in node.values)]
    return ["…"]


@cache
def sites() -> tuple[Site, ...]:
    """Every error that the package makes with a code, in the order of the source."""
    return tuple(_sites())


def _sites() -> Iterator[Site]:
    paths = sorted(PACKAGE.rglob("*.py"))
    trees = {_module(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    kinds = error_classes(trees)
    for module, tree in trees.items():
        for owner, call in _calls(tree):
            if isinstance(call.func, ast.Name) and call.func.id == CHECK_OF_A_CHOICE:
                yield _site_of_choice(call, module)
            if len(call.args) != 2:
                continue
            kind = owner if ast.unparse(call.func) == "super().__init__" else ast.unparse(call.func)
            if kind not in kinds:
                continue
            for code in variants(call.args[0]):
                for sentence in variants(call.args[1]):
                    if re.fullmatch(r"[a-z0-9-]+", code):
                        yield Site(code, sentence, kind, module)


def _site_of_choice(call: ast.Call, module: str) -> Site:
    """The error of a name that is not among the known ones."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    code, what = (variants(named[name])[0] for name in ("code", "what"))
    return Site(code, NO_SUCH_CHOICE.replace("{what}", what), "BadParameterError", module)


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _calls(node: ast.AST, owner: str = "") -> Iterator[tuple[str, ast.Call]]:
    """All calls, each with the class it stands in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield owner, child
        yield from _calls(child, child.name if isinstance(child, ast.ClassDef) else owner)


def shown(sentence: str) -> str:
    """A sentence as the page shows it: options in bold, nothing that Markdown would take for markup."""
    text = re.sub(r"\{option\.(\w+)\[([^\]]*)\]\}", "\0\\1 \\2\1", sentence)
    text = re.sub(r"\{option\.([^}]+)\}", "\0\\1\1", text)
    text = re.sub(r"(?<!\{)\{(\w+)[!:][^{}]*\}", r"{\1}", text)
    text = text.replace("{{", "{").replace("}}", "}").replace("\n", " ")
    text = re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", text)
    return text.replace("\0", "**").replace("\1", "**")


def page() -> str:
    """The whole page."""
    by_code: dict[str, list[Site]] = defaultdict(list)
    for site in sites():
        by_code[site.code].append(site)
    areas: dict[str, list[str]] = defaultdict(list)
    for code, places in by_code.items():
        areas[Counter(site.area for site in places).most_common(1)[0][0]].append(code)
    lines = [INTRODUCTION]
    for title, _ in AREAS:
        if codes := sorted(areas[title]):
            lines.append(f"## {title}\n")
            lines += [_entry(code, by_code[code]) for code in codes]
    return "\n".join(lines)


def _entry(code: str, places: list[Site]) -> str:
    sentences = dict.fromkeys(shown(site.sentence) for site in places)
    kinds = ", ".join(f"`{kind}`" for kind in sorted({site.kind for site in places}))
    modules = ", ".join(f"`{module}`" for module in sorted({site.module for site in places}))
    listed = "\n".join(f"- {sentence}" for sentence in sentences)
    return f"### {code}\n\n{listed}\n\n{kinds} from {modules}\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/errors.md is not what the source says: run 'python .ci/error_page.py'", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
