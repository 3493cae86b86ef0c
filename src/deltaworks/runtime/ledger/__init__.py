"""The batch ledger: its table, its state, and what tables provably hold."""
