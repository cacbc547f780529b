# SPDX-License-Identifier: Apache-2.0
"""docs/configuration.md is generated from the present Config/carillon.yaml and has every key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from docs.configuration_page import OPTIONAL, PAGE, SOURCE, entries, render


def keys(value: Any, path: str) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict):
        for name, member in value.items():
            # A value in braces on one line belongs to one key.
            here = f"{path}.{name}" if path else name
            yield here
            yield from keys(member, here)
    elif isinstance(value, list):
        for item in value:
            yield from keys(item, f"{path}[]")


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(SOURCE.read_text()), "run: python -m docs.configuration_page"


def test_the_page_has_every_key() -> None:
    source = SOURCE.read_text()
    found = {entry.path: entry for entry in entries(source)[1]}
    inline = {path for path, entry in found.items() if entry.value.startswith("{")}
    wanted = {key for key in keys(yaml.safe_load(source), "") if not any(key.startswith(f"{path}.") for path in inline)}
    wanted.discard("apps")
    optional = {f"{path}.{name}" for path, names in OPTIONAL.items() for name in names}
    assert len(wanted) > 50
    assert set(found) - {"apps[]"} == wanted | optional


def test_a_line_that_is_not_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no key"):
        render("# intro\n\n- 7\n")
