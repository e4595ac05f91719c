"""Attacks on released vectors, with the original texts beside them.

inversion   which words did the text have? by the nearest public sentence, and by a trained inversion
words       which word was it? where each word has a vector
claim       is the noise as large as the card needs?
report      all attacks in one report
"""
