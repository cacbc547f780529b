# SPDX-License-Identifier: Apache-2.0
"""A worker with its broker, Redis and APNs simulator, for the tests of the external interfaces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.tests.small_world import SmallWorld

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def binary() -> Path:
    binary = Path(os.environ.get("CARILLON_BINARY", TOP / ".build/debug/carillon")).resolve()
    assert binary.exists(), f"{binary} is not built: swift build --product carillon"
    return binary


@pytest.fixture(scope="session")
def world(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallWorld]:
    world = SmallWorld(binary, tmp_path_factory.mktemp("world"))
    try:
        world.open()
        yield world
    finally:
        world.close()
