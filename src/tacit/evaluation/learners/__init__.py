"""Learners for downstream tasks, from fast to strong, behind one face: `fit(texts, labels, seed).predict(texts)`.

probe         logistic or ridge regression on frozen sentence vectors
tfidf         the same on words and word pairs
lstm          a small LSTM on frozen public word vectors
transformer   an encoder, fine-tuned

What a text is depends on the task: a string (classification), two strings (pairs, similarity), or tokens (tagging).
"""

from tacit.evaluation.learners.base import LEARNERS, TASKS, Learner, Task, make_learner

__all__ = ["LEARNERS", "TASKS", "Learner", "Task", "make_learner"]
