"""What an upsert is made of: keys, diff, MERGE statement, strategy."""
