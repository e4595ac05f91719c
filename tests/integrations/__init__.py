"""Tacit inside other libraries."""
