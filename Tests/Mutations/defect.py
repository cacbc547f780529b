# SPDX-License-Identifier: Apache-2.0
"""A defect for `mutations.py`."""

from dataclasses import dataclass

SCRIPTS = "Sources/Worker/State/Scripts/"
DECISION = "Sources/PushCore/Decision/"


@dataclass
class Defect:
    name: str
    """What is wrong."""
    says: str
    path: str
    old: str
    new: str
