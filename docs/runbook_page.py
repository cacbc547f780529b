# SPDX-License-Identifier: Apache-2.0
"""Generates the worker's page of runbooks from docs/runbooks.md: `python -m docs.runbook_page`."""

from __future__ import annotations

import re
import textwrap
from html import escape
from pathlib import Path

TOP = Path(__file__).parents[1]
SOURCE, PAGE = TOP / "docs/runbooks.md", TOP / "Sources/Worker/Operator/RunbookText.swift"
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
/// `python -m docs.runbook_page` generates this file from docs/runbooks.md: the runbook of each alert as HTML.
enum RunbookText {
    static let html: Markup = #\"\"\"
"""


def inline(text: str) -> str:
    """Code, bold and links as HTML. Only links to other runbooks remain: the page has no other document."""
    parts = re.split(r"`([^`]*)`", text)
    out = ""
    for index, part in enumerate(parts):
        if index % 2:
            out += f"<code>{escape(part, quote=False)}</code>"
            continue
        part = escape(part, quote=False)
        part = re.sub(r"\[([^\]]*)\]\(#(carillon[a-z]*)\)", r'<a href="#\2">\1</a>', part)
        part = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", part)
        out += re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", part)
    return out


def blocks(text: str) -> list[str]:
    """The HTML of a runbook's list items and paragraphs."""
    out: list[str] = []
    for block in re.split(r"\n(?=- )|\n\n", text.strip()):
        words = inline(" ".join(block.split()))
        out.append(f"<li>{words[2:]}</li>" if words.startswith("- ") else f"<p>{words}</p>")
    html = "\n".join(out)
    return re.sub(r"((?:<li>.*?</li>\n?)+)", r"<ul>\n\1</ul>\n", html + "\n").split("\n")


def render(source: str) -> str:
    lines: list[str] = []
    for name, text in re.findall(r"^### (Carillon\w+)\n(.*?)(?=^#|\Z)", source, re.DOTALL | re.MULTILINE):
        assert "|" not in text and "```" not in text, f"{name}: lists and paragraphs only"
        lines.append(f'<h3 id="{name.lower()}">{name}</h3>')
        for line in blocks(text):
            lines += textwrap.wrap(line, 110, break_long_words=False, break_on_hyphens=False)
    return HEAD + "".join(f"        {line}\n" for line in lines) + '        """#\n}\n'


def main() -> None:
    PAGE.write_text(render(SOURCE.read_text()))


if __name__ == "__main__":
    main()
