# SPDX-License-Identifier: Apache-2.0
"""Windows and counts of the rules: as they are in use, and shortened for the drill that makes every alert fire."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Terms:
    """What the rules ask for a duration or a count; without tables each is what the rule says."""

    durations: dict[str, str] = field(default_factory=dict)
    seconds: dict[float, float] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    # The rules' evaluation interval, and that of the scrapes.
    interval: str = "15s"

    def d(self, duration: str) -> str:
        """A window or a `for:`."""
        return self.durations[duration] if self.durations else duration

    def seconds_of(self, window: str) -> int:
        return _seconds(self.d(window))

    def steps(self, window: str, step: str) -> float:
        """How many steps of a subquery a window has."""
        return _seconds(self.d(window)) / _seconds(self.d(step))

    def s(self, seconds: float) -> float:
        """A threshold in seconds."""
        return self.seconds.get(seconds, seconds)

    def n(self, count: int) -> int:
        """A least number of events, without which a share says nothing."""
        return self.counts.get(count, count)


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[duration[-1]]


PRODUCTION = Terms()

# Every window in use has its short one; a window that is missing here fails at once.
DRILL = Terms(
    durations={
        "1m": "2s",
        "2m": "4s",
        "5m": "6s",
        "10m": "10s",
        "15m": "12s",
        "30m": "8s",
        "1h": "12s",
        "6h": "15s",
        "1d": "60s",
        "3d": "20s",
    },
    seconds={30: 1, 60: 3, 120: 4},
    counts={20: 5, 50: 5, 100: 10},
    interval="1s",
)
