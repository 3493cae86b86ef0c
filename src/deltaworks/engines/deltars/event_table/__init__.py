"""Append-only tables of our own: ledger, run records, offsets."""
