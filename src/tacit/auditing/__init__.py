"""Check any privacy claim, attack any release.

claims      is the promise true? exact checks, and statistical lower bounds for black boxes
text        what does a released text give away? inversion, re-identification, attributes, survivors, linkage
synthetic   shadow releases of a sketch and of corpora, canaries, planted mistakes
models      what does a trained model give away? membership, canaries, extraction, memorization
"""
