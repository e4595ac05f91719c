"""The HTTP service and its page: the same mechanisms, guarantees and ledger as the command, over the network."""
