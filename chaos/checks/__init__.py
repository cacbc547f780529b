"""The invariants, one group a file."""
