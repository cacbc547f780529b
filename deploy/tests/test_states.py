# SPDX-License-Identifier: Apache-2.0
"""The count of states, by types made by hand."""

from deploy.states import Declared, add, count


def member(kind: str, text: str, *named: str) -> dict:
    """A declaration as the compiler describes it: its text ends with the types that it names."""
    fragments = [{"spelling": text}, *({"spelling": "", "preciseIdentifier": name} for name in named)]
    title = text.split("var ")[-1].split("let ")[-1].split(":")[0]
    return {"kind": {"identifier": f"swift.{kind}"}, "declarationFragments": fragments, "pathComponents": ["T", title]}


def test_structs_count_in_full_and_shared_objects_once() -> None:
    job, part, options = Declared("class"), Declared("struct"), Declared("struct")
    types = {"RecipientJob": job, "J": job, "P": part, "O": options}
    for symbol in (member("property", "var low: Int"), member("property", "var high: Int"), member("property", "let id: Int")):
        add(symbol, part, "P")
    add(member("property", "var size: Int { get }"), part, "P")
    add(member("property", "let rawValue: UInt8"), options, "O")
    add(member("type.property", "static let first: O", "O"), options, "O")
    add(member("type.property", "static let second: O", "O"), options, "O")
    add(member("property", "var own: P", "P"), job, "J")
    add(member("property", "let fixed: P", "P"), job, "J")
    add(member("property", "var flags: O", "O"), job, "J")
    add(member("property", "var other: RecipientJob?", "J"), job, "J")
    total, rows = count(types, "RecipientJob")
    assert dict(rows) == {"own": 3, "fixed": 2, "flags": 3, "other": 1}
    assert total == 9
