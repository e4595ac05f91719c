"""Text and answers from private records without training: a public model reads them, and its predictions are mixed.

law         the next token from clipped, averaged predictions, and its price
batches     records in disjoint batches, by a keyed hash
plan        how many batches and tokens a budget buys
reading     the face of a model, and the check that its rows do not depend on each other
generation  texts of many batches side by side
votes       answers by private vote over disjoint sets of examples
"""
