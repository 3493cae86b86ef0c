"""Probes of sources and clusters."""
