"""Pipelines that run as streams."""
