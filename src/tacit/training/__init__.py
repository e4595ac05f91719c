"""Train models under differential privacy."""
