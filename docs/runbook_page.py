# SPDX-License-Identifier: Apache-2.0
"""Generates the worker's page of runbooks from docs/runbooks.md: `python -m docs.runbook_page`."""

from __future__ import annotations

import re
import textwrap
from html import escape
from pathlib import Path

TOP = Path(__file__).parents[1]
SOURCE = TOP / "docs/runbooks.md"
FOLDER = TOP / "Sources/Worker/Operator"
SYMPTOMS, BESIDE = "Symptoms, causes and actions", "Without an alert"
HEAD = """\
// SPDX-License-Identifier: Apache-2.0
/// `python -m docs.runbook_page` generates this file from docs/runbooks.md: {what} as HTML.
{opening}
"""


def slug(title: str) -> str:
    """The id of a heading, as links in the document name it."""
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def link(match: re.Match[str]) -> str:
    """A link inside the document. The page has no other document, so of a link to one its name remains."""
    text, target = match[1], match[2]
    if target.startswith("#"):
        return f'<a href="{target}">{text}</a>'
    return f"<code>docs/{text}</code>" if text.endswith(".md") else text


def inline(text: str) -> str:
    """Code, bold and links as HTML. The name of an alert leads to its runbook."""
    text = re.sub(r"(?<!\[)\b(Carillon[A-Z]\w+)", lambda name: f"[{name[1]}](#{name[1].lower()})", text)
    out = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))
    # Bold words may contain code.
    out = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", out)
    return re.sub(r"\[([^\]]*)\]\(([^)]*)\)", link, out)


def table(rows: list[str]) -> list[str]:
    """With the roles and labels of PageTable, for narrow screens."""
    cells = [[inline(cell.strip()) for cell in row.strip("|").split(" | ")] for row in rows]
    titles = [re.sub(r"<[^>]*>", "", title) for title in cells[0]]
    heads = "".join(f'<th role="columnheader" scope="col">{title}</th>' for title in cells[0])
    out = [
        f'<table role="table"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>',
        '<tbody role="rowgroup">',
    ]
    for first, *others in cells[2:]:
        out.append(f'<tr role="row"><th role="rowheader" scope="row">{first}</th>')
        assert len(others) == len(titles) - 1, first
        out += [f'<td role="cell" data-label="{title}">{cell}</td>' for title, cell in zip(titles[1:], others, strict=True)]
        out.append("</tr>")
    return [*out, "</tbody></table>"]


def blocks(text: str) -> list[str]:
    """The HTML of headings, list items, paragraphs and tables."""
    assert "```" not in text
    out: list[str] = []
    for block in re.split(r"\n(?=- )|\n\n", text.strip()):
        if heading := re.fullmatch(r"(##+) (.*)", block):
            level = len(heading[1])
            title = re.sub(r"`([^`]*)`", r"<code>\1</code>", heading[2])
            out.append(f'<h{level} id="{slug(heading[2])}">{title}</h{level}>')
        elif block.startswith("|"):
            out += table(block.split("\n"))
        else:
            words = inline(" ".join(block.split()))
            out.append(f"<li>{words[2:]}</li>" if words.startswith("- ") else f"<p>{words}</p>")
    html = "\n".join(out)
    return re.sub(r"((?:<li>.*?</li>\n?)+)", r"<ul>\n\1</ul>\n", html + "\n").split("\n")


def constant(name: str, text: str) -> str:
    lines = [part for line in blocks(text) for part in textwrap.wrap(line, 110, break_long_words=False, break_on_hyphens=False)]
    return f'    static let {name}: Markup = #"""\n' + "".join(f"        {line}\n" for line in lines) + '        """#\n'


def render(source: str) -> dict[str, str]:
    """The generated files by name."""
    chapters = re.split(r"^(?=## )", source, flags=re.MULTILINE)[1:]
    named = {chapter.split("\n", 1)[0].removeprefix("## "): chapter for chapter in chapters}
    symptoms, beside = named.pop(SYMPTOMS), named.pop(BESIDE)
    alerts = HEAD.format(what="the runbook of each alert", opening="enum RunbookText {") + constant(
        "alerts", "".join(named.values())
    )
    rest = HEAD.format(what="the symptoms and the causes without an alert", opening="extension RunbookText {")
    rest += constant("symptoms", symptoms) + "\n" + constant("withoutAlert", beside)
    return {"RunbookText.swift": alerts + "}\n", "RunbookText+Beside.swift": rest + "}\n"}


def main() -> None:
    for name, text in render(SOURCE.read_text()).items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
