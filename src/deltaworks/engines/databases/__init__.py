"""Databases that speak SQL over a network: how each is reached, asked and written."""
