"""Reproducible experiments: a configuration file in, raw results, tables beside the published ones and a page out.

declared    tables of the file, values of axes
config      the file: what is allowed in it, and errors that name the key
steps/      one file per kind of step; each writes raw results into a folder and derives its scores from them
expansion   a step of the file as its cells, one for each combination of its axes
plan        the file as a graph of cells, each with a key that tells whether it has been run before
validation  what is wrong before anything runs
execution   one step in its folder of the cache
runner      runs what is missing, with several processes; survives being killed at any moment
collecting  results and costs from the cache
results     the scores of all cells as one table
measures    the names of all scores
quantities  which scores a table, a figure or a finding looks at
evaluation  their values in a group of cells
chance      means, standard errors, and what chance could have done
findings    statements as Python functions over the scores; verdicts: what came of them
figures     curves over epsilon, heat maps
tables      scores, published values beside ours, verdicts
report      tables (CSV, Markdown) and one HTML page; pages: those of several experiments
job         run, resume and report as jobs
"""
