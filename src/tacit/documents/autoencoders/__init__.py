"""Autoencoders: text to a latent of constant shape and back. Loaded only when used; they need the extra 'documents'.

base         what every autoencoder is, and the record of what it was trained on
built_in     models by name
bart         any Hugging Face BART
narrow       a BART with a latent of few positions and few dimensions
lstm         the LSTM encoder-decoder of ADePT
vocabulary   a byte-pair vocabulary from public text
"""

from tacit.documents.autoencoders.base import AUTOENCODERS, Autoencoder, Record, load_autoencoder
from tacit.documents.autoencoders.built_in import built_in_models

__all__ = [
    "AUTOENCODERS",  # all kinds of autoencoders, those of plug-ins too
    "Autoencoder",  # text to latent and back
    "Record",  # what a model was trained on and for
    "built_in_models",  # names of the models that come with Tacit
    "load_autoencoder",  # a model by built-in name, folder or hub name
]
