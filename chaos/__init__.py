"""Chaos runs of Carillon, and the checker that judges them (docs/chaos.md)."""
