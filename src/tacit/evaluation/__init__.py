"""Measures of utility: similarity of texts, downstream tasks, deniability, the trade-off with privacy.

rows         original and released files, row by row
similarity   BLEU, chrF, BERTScore, cosine, perplexity, kept words, length, each between its floor and its ceiling
scores       macro-F1 and the like, exact floors, intervals over seeds and over test items
collapse     flags for results that look like numbers and are nothing
learners     probe, tf-idf, LSTM, transformer behind one face
downstream   trained on released text, tested on original text
deniability  how many words could have become a word, and the other way around
tradeoff     utility against privacy, on axes that do not mix promises
"""
