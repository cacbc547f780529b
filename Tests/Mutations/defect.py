# SPDX-License-Identifier: Apache-2.0
"""A defect for `mutations.py`."""

from dataclasses import dataclass


@dataclass
class Defect:
    name: str
    """What is wrong."""
    says: str
    path: str
    old: str
    new: str
