"""Frozen values that flow through the verbs."""
