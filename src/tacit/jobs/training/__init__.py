"""Shared parts of the jobs that train on private records.

options      the options that all of them have, or all that train a model for a task
tasks        the columns of each task
planning     sampling, noise and steps from the options
result       what a training reports while it works, and what it gives back

The other modules load the libraries of neural models, and are imported when a job runs:

running      rows, models and the course of every run
records      training on single records          users   training on users
rewriter     training of a rewriting model       predictions   use of a trained model
writing      a private writer and its texts      phases  selective training
public_models   where they start
"""
