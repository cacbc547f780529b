# SPDX-License-Identifier: Apache-2.0
"""The worlds of `carillon generate` are valid by the schemas of input records."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from docs.tests.schemas import complaints, unknown_fields

EVENT_KINDS = ("message", "revoke")


@pytest.mark.parametrize("seed", [1, 2])
def test_every_record_keeps_to_its_schema(binary: Path, tmp_path: Path, seed: int) -> None:
    out = tmp_path / "world.ndjson"
    sizes = ["--users", "200", "--groups", "10", "--largest", "100", "--messages", "800", "--duration", "10m"]
    storms = ["--read-storms", "1", "--bind-storms", "11", "--flapping", "0.3", "--redis-out", str(tmp_path / "redis")]
    subprocess.run([binary, "generate", "--out", out, "--seed", str(seed), *sizes, *storms], check=True)
    kinds = set()
    for line in out.read_text().splitlines():
        value = json.loads(line)["value"]
        kinds.add(value["kind"])
        schema = "events.json" if value["kind"] in EVENT_KINDS else "user-state.json"
        assert complaints(schema, value) == [], line
        assert unknown_fields(schema, value, value["kind"]) == [], line
    assert kinds == {*EVENT_KINDS, "bind", "unbind", "settings", "mute", "read", "ack"}
