"""Training of rewriting models on public text. Loaded only when used; needs the extra 'documents'.

corpus     text that is declared public, and the refusal of any other
clipping   the bound that a model is trained with
folders    the folder of a training: whether it is finished, and how a model is measured and saved in it
loop       training with clipping and noise: resume, early stopping, logs
prune      DP-BART-PR: which encoder neurons are kept
"""

from tacit.documents.pretraining.corpus import PublicText

__all__ = [
    "PublicText",  # text that its owner declares public
]
