"""A synthetic corpus beside the originals it stands for: no row of the one belongs to a row of the other.

learning   learners trained on the corpus and on the originals, tested on other originals
clouds     the distance of the two clouds of vectors, beside that of two halves of the originals
wording    proportions of labels, repeated rows, distinct words
fluency    perplexity under a public language model
facts      names, numbers and rare words of private rows in the corpus, beside chance
report     all of it with lights; private
public     rows of a public pool that know nothing but the names of the labels: what a corpus has to beat
"""

from tacit.evaluation.corpus.learning import CorpusScores, LearnerScore, TrainedScore, corpus_scores
from tacit.evaluation.corpus.public import rows_by_name
from tacit.evaluation.downstream import Labeled

__all__ = ["CorpusScores", "Labeled", "LearnerScore", "TrainedScore", "corpus_scores", "rows_by_name"]
