"""The papers of the survey of private language processing: what each claims, and what Tacit has in its place.

The table is `survey.toml`; `docs/literature.md` is made from it, and a test runs every command of it.
"""

from tacit.literature.papers import OpenQuestion, Paper, directions, find_papers, papers

__all__ = ["OpenQuestion", "Paper", "directions", "find_papers", "papers"]
