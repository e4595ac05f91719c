"""What jobs that train on private records share.

options    the options that all of them have, or all that train a model for a task
tasks      the columns of each task
planning   sampling, noise and steps from the options
running    a run from its options to the saved model: the only place that loads models
"""
