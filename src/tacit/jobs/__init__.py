"""Use cases, one module each: a frozen, validated configuration and one function that carries it out.

The command line, the service, experiments and Python call the same functions; every option is declared once, as a
field of a configuration.
"""
