"""Tests of pipelines that users write."""
