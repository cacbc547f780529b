# SPDX-License-Identifier: Apache-2.0
"""What a run is made with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from chaos.evidence import INPUTS
from chaos.schedule import BASE, Action, Shape
from chaos.traffic import Load


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    binary: Path
    folder: Path
    seed: int
    fault: str
    actions: list[Action]
    shape: Shape
    load: Load
    partitions: int = 4
    shards: int = 2
    delay_ms: int = 20
    # Pushes in flight per shard, unsettled records per partition: the configuration's own defaults.
    in_flight: int = 2000
    window: int = 20_000
    ack_share: float = 0.7
    quiet_s: float = 60.0
    # From the simulator's start to the traffic's: what the workers have to form their group.
    setup_s: float = 12.0
    broken: str = ""
    redis: str = "single"
    broker: str = "embedded"
    tansu: Path | None = None
    worker_env: dict[str, str] = field(default_factory=dict)
    # An earlier binary, and who begins with it.
    base: Path | None = None
    of_base: tuple[str, ...] = ()
    # The window of bursts; 0: none.
    coalesce_s: float = 0.0

    def program(self, version: str) -> Path:
        return self.base if version == BASE and self.base else self.binary

    @property
    def session_ms(self) -> int:
        return int(self.shape.session_s * 1000)

    @property
    def input_partitions(self) -> int:
        return len(INPUTS) * self.partitions
