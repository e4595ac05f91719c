"""Topics of private texts: the private steps.

counts    exact counts of cells and words, bounded for each unit
release   noise on both, and their guarantee
lda       topics by noisy sufficient statistics of latent Dirichlet allocation
"""
