"""Averages of private texts, released once, from which a corpus that may be shared is drawn.

encoder    the static sentence encoder that comes with Tacit
pool       public sentences, with the license of each
features   what is averaged: bounded integer features of one text
pure       features for a promise without delta
labels     public labels, bins of numbers, or topics
sketch     the private step: sums per label, with noise, and their guarantee
artifact   `sketch.tacit`: a sketch as one file
merging    sketches of several sites as one
"""
