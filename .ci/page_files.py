"""Small files with the names that the pages of the documentation use, made of the requests in examples/ (CC0).

A page is checked in a folder of its own: its files, then commands whose results the page takes for granted, then what
is on the page. Only what a check must not do is changed: places in a store become folders, numbers of rows and of
shadow releases become small.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = 600
TEXTS = ("text", "message", "question", "answer", "tokens")
PEOPLE = ("sender", "customer", "user", "author")
VALUES = {
    "intent": ("refund", "delivery", "other"),
    "topic": ("billing", "delivery", "other"),
    "label": ("good", "bad"),
    "stars": ("1", "2", "3", "4", "5"),
    "channel": ("mail", "phone"),
}


@dataclass(frozen=True)
class CheckedPage:
    """A page, and the folder in which it is checked.

    files      columns of tables by name; their rows are requests, each label with its own intents
    also       writes what is no table
    before     commands whose results the page uses
    changed    parts of commands and what the check puts in their place
    names      Python that defines what the code on the page uses
    exits      exit codes by a part of the command
    typed      what a reader types on the terminal, by command
    fresh      whether each command may write over the results of others: a page shows alternatives
    """

    name: str
    files: dict[str, Sequence[str]] = field(default_factory=dict)
    also: Callable[[Path], None] = lambda folder: None
    before: Sequence[str] = ()
    changed: Sequence[tuple[str, str]] = ()
    names: str = ""
    exits: dict[str, int] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    fresh: bool = True


def requests() -> list[tuple[str, int]]:
    """Texts and the numbers of their intents."""
    with (ROOT / "examples" / "requests.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {intent: number for number, intent in enumerate(sorted({row["intent"] for row in rows}))}
    return [(row["text"], numbers[row["intent"]]) for row in rows]


def table(columns: Sequence[str], first: int = 0, rows: int = ROWS) -> list[list[str]]:
    """Rows of a table with these columns. Other rows begin at another place."""
    return [
        [cell(column, text, number, place) for column in columns]
        for place, (text, number) in enumerate(requests()[first : first + rows])
    ]


def cell(column: str, text: str, number: int, place: int) -> str:
    """The value of a row in a column."""
    if column in TEXTS:
        return text
    if column in PEOPLE:
        return f"person {place // 4}"  # the rows of a person stand together, as one option asks for
    if column == "upos":
        return " ".join("VERB" if word.endswith(("e", "d")) else "NOUN" for word in text.split())
    if column == "id":
        return str(place)
    return VALUES[column][number % len(VALUES[column])]


def write_table(path: Path, columns: Sequence[str], first: int = 0) -> None:
    """A file in the format of its name."""
    rows = table(columns, first)
    if ".jsonl" in path.suffixes:
        text = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        content = text.encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    elif path.suffix == ".txt":
        path.write_text("".join(row[0] + "\n" for row in rows[:60]), encoding="utf-8")
    else:
        text = io.StringIO()
        csv.writer(text, delimiter="\t" if ".tsv" in path.suffixes else ",").writerows([list(columns), *rows])
        content = text.getvalue().encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_files(page: CheckedPage, folder: Path, python: str) -> None:
    """All files of a page. Each table has rows of its own where there are enough of them."""
    for number, (name, columns) in enumerate(page.files.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_table(folder / name, columns, first=number * ROWS % 3_000)
    page.also(folder)
    if "my-model" in (text := (ROOT / page.name).read_text(encoding="utf-8")):
        small_model(folder / "my-model", python, "BertForSequenceClassification", "BertConfig")
    if "a-causal-model" in text:
        small_model(folder / "a-causal-model", python, "GPT2LMHeadModel", "GPT2Config")


def graph_files(folder: Path) -> None:
    """A graph of two classes, and the folder of a store."""
    nodes = [f"n{i}\t{'a' if i % 2 else 'b'}\t{i % 2} {2 + i % 7}" for i in range(200)]
    (folder / "nodes.tsv").write_text("node\tlabel\tfeatures\n" + "\n".join(nodes) + "\n", encoding="utf-8")
    links = [f"n{i}\tn{(i + 2) % 200}" for i in range(200)]
    (folder / "edges.tsv").write_text("source\ttarget\n" + "\n".join(links) + "\n", encoding="utf-8")
    requests_file(folder)


def requests_file(folder: Path) -> None:
    """All requests, as they are."""
    (folder / "requests.csv").write_bytes((ROOT / "examples" / "requests.csv").read_bytes())


def small_model(folder: Path, python: str, kind: str, configuration: str) -> None:
    """A tiny model of a kind of transformers with the tokenizer of MiniLM; nothing where these are not installed."""
    size = "hidden_size=32, num_hidden_layers=2, num_attention_heads=2"
    more = ", intermediate_size=64" if configuration == "BertConfig" else ""
    code = (
        "import sys, transformers as t; from tacit.vectors.minilm import minilm_folder; "
        "words = t.AutoTokenizer.from_pretrained(minilm_folder()); "
        f"t.{kind}(t.{configuration}(vocab_size=len(words), {size}{more})).save_pretrained(sys.argv[1]); "
        "words.save_pretrained(sys.argv[1])"
    )
    subprocess.run([python, "-c", code, str(folder)], check=False, capture_output=True)


def audited_files(folder: Path) -> None:
    """A mechanism of somebody else: as a table of probabilities, and as a function."""
    (folder / "theirs.csv").write_text("word,a,b\na,0.7,0.3\nb,0.3,0.7\n", encoding="utf-8")
    (folder / "words.txt").write_text("good\nbad\nfilm\n", encoding="utf-8")
    (folder / "theirs.py").write_text(
        "def law(word):\n    return {'good': 1 / 3, 'bad': 1 / 3, 'film': 1 / 3}\n", encoding="utf-8"
    )


def options_file(folder: Path) -> None:
    """The configuration that the page about rewriting shows, with an output that no command on the page has."""
    text = (ROOT / "docs" / "rewrite.md").read_text(encoding="utf-8")
    shown = text.partition("```toml\n")[2].partition("```")[0]
    (folder / "options.toml").write_text(shown.replace("private.csv", "again.csv"), encoding="utf-8")


TICKETS = ("text", "intent")
MATCHED = "tacit synthesize tickets.csv -l intent --labels refund,delivery,other --epsilon 1 -o synthetic.csv"
SKETCHED = "tacit sketch build {0}.csv -l intent --labels refund,delivery,other --epsilon 1 -o {0}.tacit"
TRAINED = "tacit train classify train.csv --label-column label --epsilon 3 --epochs 1 -o model"

README = CheckedPage(
    "README.md",
    files={
        "reviews.csv": ("text", "label", "sender"),
        "mail.csv": ("text", "label", "sender"),
        "new.csv": ("text",),
        "notes.txt": ("text",),
        "notes.csv": ("text",),
        "big.jsonl": ("text",),
        "bucket/notes/part.csv": ("text", "label"),
    },
    also=graph_files,
    changed=(
        ("s3://bucket/", "bucket/"),
        ("-n 1000", "-n 8 --epochs 1"),
        ("experiments/", f"{ROOT}/experiments/"),
    ),
    fresh=False,
)
PAGES = (
    README,
    CheckedPage("docs/quickstart.md", fresh=False),
    CheckedPage("docs/synthesize.md", {"tickets.csv": TICKETS}, changed=(("-n 50000", "-n 500"),)),
    CheckedPage(
        "docs/matching.md",
        {
            "tickets.csv": ("text", "intent", "channel", "stars"),
            "north.csv": TICKETS,
            "south.csv": TICKETS,
            "faq.csv": ("question",),
        },
        before=(SKETCHED.format("north"), SKETCHED.format("south")),
    ),
    CheckedPage(
        "docs/guide.md",
        {"tickets.csv": ("message", "topic", "customer")},
        typed={"tacit guide tickets.csv": "text\ncurator\nshare\n1\n\n"},
    ),
    CheckedPage(
        "docs/decode.md",
        {"mails.csv": ("text", "topic")},
        also=requests_file,
        before=("tacit pool build requests.csv --column text --public Snips --license CC0 -o small.tacit",),
        changed=(("decode private.csv", "decode private.csv --pool small.tacit"),),
    ),
    CheckedPage(
        "docs/evaluate.md",
        {
            "messages.csv": ("text", "topic"),
            "train.csv": ("text", "topic"),
            "test.csv": ("text", "topic"),
            "tickets.csv": TICKETS,
            "tickets-test.csv": TICKETS,
        },
        before=(
            "tacit rewrite messages.csv --column text --keep topic --epsilon 2 -o private.csv",
            *(f"tacit rewrite train.csv -c text -k topic -e {epsilon} -o eps{epsilon}.csv" for epsilon in (1, 5, 10)),
            MATCHED,
        ),
        names=(
            "import csv, tacit\n"
            "rows = list(csv.DictReader(open('messages.csv')))\n"
            "originals, labels = [row['text'] for row in rows], [row['topic'] for row in rows]\n"
            "releases = [row['text'] for row in csv.DictReader(open('private.csv'))]\n"
            "test_texts, test_labels = originals[:100], labels[:100]\n"
        ),
    ),
    CheckedPage("docs/audit.md", also=audited_files),
    CheckedPage(
        "docs/audit-text.md",
        {"reviews.csv": ("text", "user")},
        before=("tacit rewrite reviews.csv --column text --keep user --epsilon 2 -o private.csv",),
        names=(
            "import tacit\n"
            "mechanism = tacit.SanText(epsilon=2.0, limit=500)\n"
            "originals = ['a charming journey', 'a dull film', 'no news today']\n"
            "released = mechanism.rewrite(originals).texts\n"
        ),
    ),
    CheckedPage(
        "docs/audit-synthetic.md",
        {"tickets.csv": TICKETS},
        before=(MATCHED,),
        changed=(
            ("--corpus", "--releases 40 --corpora 0 --coins 100 --corpus"),
            ("--planted", "--releases 40 --corpora 0 --coins 100 --planted"),
            ('label_column="intent")', 'label_column="intent", releases=40, corpora=0, coins=100)'),
            ("releases=200)", "releases=20)"),
        ),
        names=(
            "import csv\n"
            "from tacit.matching.artifact import read_sketch\n"
            "rows = list(csv.DictReader(open('tickets.csv')))\n"
            "texts, labels = [row['text'] for row in rows], [row['intent'] for row in rows]\n"
            "sketch = read_sketch('synthetic-sketch.tacit')\n"
        ),
        exits={"--planted": 3},
    ),
    CheckedPage(
        "docs/audit-models.md",
        {"train.csv": ("text", "label"), "held-out.csv": ("text", "label")},
        before=(TRAINED,),
        names=(
            "import numpy as np\n"
            "texts, labels = [f'text {i}' for i in range(40)], [i % 2 for i in range(40)]\n"
            "def train(texts, labels, seed):\n"
            "    known = set(texts)\n"
            "    return lambda texts, labels: np.array([0.0 if text in known else 1.0 for text in texts])\n"
            "parameters, clip, claimed_epsilon = 2_000, 1.0, 1.0\n"
            "def step(gradients):\n"
            "    return gradients.numpy().sum(axis=0) + np.random.default_rng().normal(scale=5.0, size=parameters)\n"
        ),
    ),
    CheckedPage(
        "docs/rewrite.md",
        {
            "reviews.csv": ("text", "stars"),
            "notes.txt": ("text",),
            "calls.jsonl.gz": ("question", "answer", "id"),
            "big.csv": ("text",),
            "big.csv.gz": ("text",),
            "mail.csv": ("text", "customer"),
        },
        also=options_file,
    ),
    CheckedPage(
        "docs/training.md",
        {
            "reviews.csv": ("text", "stars", "label"),
            "sentences.tsv": ("tokens", "upos"),
            "notes.csv": ("text",),
            "new.csv": ("text",),
            "test.csv": ("text", "stars", "label"),
            "train.csv": ("text", "label"),
        },
        changed=(("--epsilon 8 -o", "--epsilon 8 --epochs 1 -o"), ("--epsilon 3 -o", "--epsilon 3 --epochs 1 -o")),
    ),
)
