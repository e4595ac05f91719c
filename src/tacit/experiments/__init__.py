"""Reproducible experiments: a configuration file in, raw results, tables beside the published ones and a page out.

config     the file: what is allowed in it, and errors that name the key
steps/     one file per kind of step; each writes raw results into a folder and derives its scores from them
plan       the file as a graph of steps, each with a key that tells whether it has been run before
sources    which code made a score, and whether what a step runs has changed
runner     runs what is missing, with several processes; survives being killed at any moment
results    the scores of all steps as one table
measures   the names of all scores
findings   published statements as checkable expressions, and their verdicts
grids      a score over two axes
figures    curves over epsilon, heat maps
report     tables (CSV, Markdown) and one HTML page
"""
