"""Reproducible experiments: a configuration file in, raw results, tables beside the published ones and a page out."""
