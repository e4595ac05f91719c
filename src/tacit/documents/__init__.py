"""Document-level mechanisms, one file each: a whole text is one secret, whatever its length, order and style."""
