"""Tacit inside other libraries: Presidio, spaCy, datasets, pandas, scikit-learn."""
