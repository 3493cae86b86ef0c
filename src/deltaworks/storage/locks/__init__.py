"""Locks on disk and leases in buckets."""
