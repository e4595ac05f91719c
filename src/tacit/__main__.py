"""`python -m tacit`: the command, for programs such as torchrun that start modules."""

from tacit.cli.main import main

main()
