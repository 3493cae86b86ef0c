"""Helpers for DataFrames that readers, transforms and writers share."""
