"""How options are called on a command line."""

from __future__ import annotations

from typing import Final

SHORT: Final = {
    "column": "-c",
    "columns": "-c",
    "count": "-n",
    "keep": "-k",
    "epsilon": "-e",
    "label_column": "-l",
    "label_columns": "-l",
    "mechanism": "-m",
    "output": "-o",
    "quiet": "-q",
    "rows": "-n",
    "workers": "-w",
}
"""Options with a name of one letter."""

SINGULAR: Final = {
    "attribute_columns": "attribute_column",
    "columns": "column",
    "encoders": "encoder",
    "epsilons": "epsilon",
    "label_columns": "label_column",
    "language_models": "language_model",
    "operators": "operator",
    "options": "option",
    "pools": "pool",
    "role_columns": "role_column",
    "private_columns": "private_column",
    "private_tests": "private_test",
    "prompts": "prompt",
}
"""Options that are given once for each of their values."""


class TerminalNaming:
    """Options as flags: `--batch`, `--epsilon 3`."""

    def name(self, option: str) -> str:
        return f"--{SINGULAR.get(option, option).replace('_', '-')}"

    def with_value(self, option: str, value: str) -> str:
        return f"{self.name(option)} {value}"


TERMINAL: Final = TerminalNaming()
