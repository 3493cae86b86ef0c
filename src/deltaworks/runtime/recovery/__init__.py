"""Restore, undo, accept and backfill."""
