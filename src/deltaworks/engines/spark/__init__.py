"""Spark runs the pipelines and makes their commits."""
