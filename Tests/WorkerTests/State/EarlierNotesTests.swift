// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

struct EarlierNotesTests {
    private static func read(_ text: String) -> EarlierNotes? {
        Array(text.utf8).withUnsafeBytes { EarlierNotes($0) }
    }

    @Test(arguments: [
        ("a2:d1d2:d2", EarlierNotes(accepted: [EarlierPush("d1")], addressed: ["d2"])),
        ("n3:dndp2:7d", EarlierNotes(withoutDevice: .dnd, wait: EarlierWait(untilMs: 7, cause: .desktopFirst))),
    ])
    func `notes are read up to the end`(text: String, notes: EarlierNotes) {
        #expect(Self.read(text) == notes)
    }

    @Test(arguments: [
        ("a2:d1z5:a2:d9q0:d2:d2", EarlierNotes(accepted: [EarlierPush("d1")], addressed: ["d2"])),
        ("w300:" + String(repeating: "x", count: 300) + "a2:d1", EarlierNotes(accepted: [EarlierPush("d1")])),
        ("Z6:2:d1moa2:d2", EarlierNotes(accepted: [EarlierPush("d2")], closed: ["d1"])),
        ("Q2:0:", EarlierNotes(withoutDevice: .msgPushOff)),
        ("n3:dndQ4:0:ab", EarlierNotes(withoutDevice: .dnd)),
        ("Z2:d1a2:d2", EarlierNotes(accepted: [EarlierPush("d2")])),
    ])
    func `a note of a later version is skipped in lower case, and closes its device in upper case`(
        text: String, notes: EarlierNotes
    ) {
        #expect(Self.read(text) == notes)
    }

    @Test(arguments: ["", "a", "a2", "a2:d", "a9:d1", "a-1:d1", "a99999999999999999999:d1", ":::", "z1:"])
    func `bytes that cannot be read are no notes`(text: String) {
        #expect(Self.read(text) == nil)
    }
}
