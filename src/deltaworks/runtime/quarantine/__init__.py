"""The quarantine table, and the replay of its rows."""
