"""Reading and writing files as streams, the public tokenization and its inverse, sensitive words."""
