"""Objects in buckets and containers, through one client for every kind of store."""
