"""Topics of private texts: noisy counts over public cells, and what is made of them without looking at the texts again.

cells     public cells in the space of the static encoder, and the cell of a text
merging   cells that are near each other as one topic, weighed by their noisy counts
naming    public sentences that say what a topic is about, and the order of its words
layout    topics as circles on a flat map
"""
