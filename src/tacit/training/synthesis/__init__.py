"""Private synthetic text: a language model is trained under differential privacy, and then writes new rows.

Yue et al., "Synthetic text generation with differential privacy" (ACL 2023); Mattern et al., "Differentially private
language models for secure data sharing" (EMNLP 2022); Kurakin et al., "Harnessing large-language models to generate
private synthetic text" (2023). Three steps, the first two of which see private rows and pay for it:

    codes.py      training: the text of a row after its labels, written out as control codes
    counts.py     how many rows each combination of labels has, with noise (the papers use the exact numbers for free)
    sampling.py   writing: new texts after control codes in these proportions, with filters (filters.py)
    writer.py     the folder that holds all of it, with one card

Writing is post-processing: it sees the private model, the noisy counts and public settings, and costs nothing, however
much is written. That holds only as long as no filter looks at the private rows: whether a generated text resembles a
private row is itself a fact about that row. Such a comparison is an audit (`tacit.auditing.models.synthetic`).
"""

from tacit.training.synthesis.codes import ControlCodes, ControlledWriting, learn_codes
from tacit.training.synthesis.counts import LabelCounts, equal_counts, exact_counts, noisy_counts
from tacit.training.synthesis.filters import Filters, Sieve, causal_perplexity
from tacit.training.synthesis.sampling import Draft, Sampling, Written, draft_settings, model_writer, write_rows
from tacit.training.synthesis.writer import (
    Budget,
    PrivateWriter,
    WriterTraining,
    corpus_guarantee,
    writer_guarantee,
)

__all__ = [
    "Budget", "ControlCodes", "ControlledWriting", "Draft", "Filters", "LabelCounts", "PrivateWriter", "Sampling",
    "Sieve", "WriterTraining", "Written", "causal_perplexity", "corpus_guarantee", "draft_settings", "equal_counts",
    "exact_counts", "learn_codes", "model_writer", "noisy_counts", "write_rows", "writer_guarantee",
]  # fmt: skip
