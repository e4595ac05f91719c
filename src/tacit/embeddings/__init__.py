"""Mechanisms that release vectors in place of texts, one file each.

base         what all of them are: a mechanism whose `embed` returns vectors with their guarantee
projection   directions of public text, and the vector of a text in them
sentences    the base of those that release one vector for a whole text
forward      bounded vector + Gaussian noise (DP-Forward, repaired)
angular      a unit vector turned by a random angle
depth        the vector of a public sentence that lies deep among the sentences of a document
words        a noisy vector for each word
heads        linear classifiers of vectors, released or private
shared_noise a noisy vector for each word, with one public noise level for the whole vocabulary (NADP, repaired)
"""
