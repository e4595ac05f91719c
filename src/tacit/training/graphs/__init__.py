"""Private graph networks for text: nodes with words, links between them, one label per node to predict.

graph       reading nodes and links; features whose making needs no private data; public splits
gcn         the two-layer graph convolution (Kipf & Welling 2017), for many small graphs at once and for a whole one
subgraphs   the method of Igamberdiev (2023, chapter 3): random disjoint subgraphs, each clipped; both readings of it
published   the same method as the published code has it, without clipping: to compare with, no guarantee
messages    one node is the unit: a linear model with noise, then noisy messages along the links (after GAP)
saved       a folder with the model and its card, and predictions from it
"""
