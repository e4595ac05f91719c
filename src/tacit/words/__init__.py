"""Word-level mechanisms, one file each: every token is replaced by a word of a public vocabulary."""
