"""Things that only this package has; Tacit finds them by the entry points beside it."""
