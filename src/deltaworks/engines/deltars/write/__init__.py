"""Commits by delta-rs: batches, epochs, compaction, restore."""
