"""Tacit inside other libraries: Presidio, spaCy, datasets and pandas. Each module needs the library it is named after.

They all rewrite with fresh noise of the operating system, drawn in the process that does the work and at the moment it
does it: no stream is made beforehand that a fork or a pickle could copy.
"""
