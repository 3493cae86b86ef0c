"""Credentials and the vaults they come from."""
