"""Attacks that measure how much a released text gives away. Each attack is one file with a pure function that returns
numbers, and one that turns them into a section of a report.

pairs            original and released rows, read from two files and checked to belong together
release          which mechanism made a release, from its privacy card or from what the user says
scale            what a success rate means: floor, ceiling, confidence, and the traffic light that follows
inversion        which word stood there? the word itself, and the Bayes-optimal guess from the exact law
mask_inference   which word stood there? guessed by a language model from the released words around it
attacker         the linear classifiers behind the next two
authorship       who wrote it?
attributes       what is the writer like?
entities         which names, places and numbers are still there?
linkage          which original does a released text belong to?
plan             which attacks make sense for a pair of files, and the report of all of them
"""
