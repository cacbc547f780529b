# SPDX-License-Identifier: Apache-2.0
"""The invariants, one group a file."""
