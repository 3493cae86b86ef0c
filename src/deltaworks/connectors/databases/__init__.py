"""Databases: dialects, increments, batches noted in a transaction."""
