# SPDX-License-Identifier: Apache-2.0
"""Generates docs/configuration.md from the annotated Config/carillon.yaml: `python -m docs.configuration_page`."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).parents[1]
SOURCE, PAGE = TOP / "Config/carillon.yaml", TOP / "docs/configuration.md"
# Keys without a default: in the file they are comments.
OPTIONAL = {
    "redis": ["sentinel", "user", "password_file", "certificate_file", "key_file"],
    "apps[]": ["endpoint", "proxy", "proxy_password_file", "ca_file"],
    "http": ["url", "token_file"],
}
HEAD = """\
# Configuration

`python -m docs.configuration_page` generates this page from the annotated `Config/carillon.yaml`. Edit the file, not this page.

"""
_KEY = re.compile(r"([a-z_]+):(?: (.*?))?(?:\s+#\s(.*))?$")


@dataclass
class Entry:
    path: str
    value: str
    text: list[str] = field(default_factory=list)
    # A key without a default: a comment in the file, with an example as its value.
    is_optional: bool = False


def entries(source: str) -> tuple[list[str], list[Entry]]:
    """The text before the first key, and each key with the comment above it."""
    intro: list[str] = []
    found: list[Entry] = []
    parents: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in source.splitlines():
        line = line.replace("- #", "  #", 1) if line.lstrip().startswith("- #") else line
        indent, text = len(line) - len(line.lstrip()), line.strip()
        while parents and text and indent <= parents[-1][0]:
            parents.pop()
        here = ".".join(name for _, name in parents)
        if not text:
            if not found and comment and not intro:
                intro, comment = comment, []
            continue
        if text.startswith("#"):
            said = text[2:]
            known = _KEY.match(said)
            if known and known[1] in OPTIONAL.get(here, []):
                found.append(Entry(f"{here}.{known[1]}", known[2] or "", comment, is_optional=True))
                comment = []
            elif found and not comment and (said.startswith("  ") or (known and found[-1].path.endswith(f".{known[1]}"))):
                # An example right below its key.
                found[-1].text.append("  " + said.strip())
            elif not said and found:
                # An empty comment line ends the comment of the key before.
                next(one for one in reversed(found) if one.path.rpartition(".")[0] == here).text.extend(["", *comment])
                comment = []
            else:
                comment.append(said)
            continue
        key = _KEY.match(text)
        if key is None:
            raise ValueError(f"no key: {line}")
        name = f"{key[1]}[]" if key[1] == "apps" else key[1]
        found.append(Entry(f"{here}.{name}" if here else name, key[2] or "", comment + ([key[3]] if key[3] else [])))
        comment = []
        if not key[2]:
            parents.append((indent, name))
    return intro, found


def _prose(lines: list[str], indent: str) -> list[str]:
    """Comment lines as paragraphs. Indented lines are examples and stay unchanged."""
    out: list[str] = []
    for line in lines:
        if not line:
            out.append("")
        elif line.startswith("  "):
            if not out or not out[-1].startswith("    "):
                out.append("")
            out.append("    " + line)
        elif out and out[-1] and not out[-1].startswith("    ") and not line.startswith("- "):
            out[-1] += " " + line
        else:
            if out and out[-1].startswith("    "):
                out.append("")
            out.append(line)
    wrapped: list[str] = []
    for line in out:
        if line.startswith("    ") or not line:
            wrapped.append((indent + line) if line else "")
        else:
            hang = "  " if line.startswith("- ") else ""
            wrapped += textwrap.wrap(
                line,
                128,
                initial_indent=indent,
                subsequent_indent=indent + hang,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return wrapped


def render(source: str) -> str:
    intro, found = entries(source)
    title, *rest = intro
    points = re.split(r"(?:^|\s)- ", " ".join(line.strip() for line in rest))[1:]
    points = [re.sub(r"(CARILLON__\S+=\S+|carillon check --\w+(?: Config\S+)?)", r"`\1`", point) for point in points]
    lines = [HEAD.rstrip(), "", title, "", *_prose([f"- {point}" for point in points], ""), ""]
    section = ""
    for entry in found:
        top = entry.path.split(".")[0]
        if top != section:
            section = top
            lines += [f"## `{top.removesuffix('[]')}`", ""]
        if entry.path == f"{top}" and not entry.text:
            continue
        value = f"{', such as' if entry.is_optional else ' ='} `{entry.value}`" if entry.value else ""
        lines.append(f"- **`{entry.path}`**{value}")
        if entry.text:
            lines += ["", *_prose(entry.text, "  ")]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(SOURCE.read_text()))
