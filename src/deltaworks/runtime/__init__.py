"""Walks a plan on Spark and keeps the ledger of its batches."""
