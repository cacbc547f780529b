# SPDX-License-Identifier: Apache-2.0
"""Chaos runs of Carillon, and the checker that judges them (docs/chaos.md)."""
