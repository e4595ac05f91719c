"""A synthetic corpus beside the originals it stands for: no row of the one belongs to a row of the other.

learning   learners trained on the corpus and on the originals, tested on other originals
public     rows of a public pool that know nothing but the names of the labels: what a corpus has to beat
"""

from tacit.evaluation.corpus.learning import CorpusScores, LearnerScore, TrainedScore, corpus_scores
from tacit.evaluation.corpus.public import rows_by_name
from tacit.evaluation.downstream import Labeled

__all__ = ["CorpusScores", "Labeled", "LearnerScore", "TrainedScore", "corpus_scores", "rows_by_name"]
