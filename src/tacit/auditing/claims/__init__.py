"""Checks of privacy claims.

laws        output probabilities: of our mechanisms, of a matrix, of a CSV file, of a function somebody else wrote
claim       what is claimed about each pair of inputs
exact       the tightest epsilon, the smallest delta, the largest violation, with the pair and output that attain it
radial      the same for all pairs of a large vocabulary, for laws that depend on a distance
sampling    lower bounds from samples, for black boxes: refuted, or not refuted at this sample size
scores      events to look at in samples
secrets     does a made-up secret come back?
noise       is the noise on a latent as large as the claim needs?
words       exact laws and samples of word mechanisms
documents   exact laws and samples of document mechanisms
mechanisms  which of these checks fit one of our mechanisms

An attack can refute a claim and never prove one. An exact check proves it for the inputs that were checked.
"""
