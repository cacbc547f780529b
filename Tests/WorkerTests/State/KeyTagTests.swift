// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// The hash tags of Carillon's own keys.
struct KeyTagTests {
    private static let ids = [
        "u", "}", "}a", "}b", "a}b", "a}}", "%7D", "%7Da", "%", "}%7D", "%25}", "{", "{}", "甲}乙", "",
    ]

    private func id(in tag: String) -> String? {
        var tag = String(tag.dropFirst().dropLast())
        return tag.withUTF8 { StateKeys.id(inTag: UnsafeRawBufferPointer($0), app: "im", atMost: 128) }
    }

    @Test func `no brace of an identifier ends a tag, and no two identifiers share one`() {
        for id in Self.ids {
            let tag = StateKeys.tag("im", id)
            #expect(tag.utf8.firstIndex(of: UInt8(ascii: "}")) == tag.utf8.index(before: tag.utf8.endIndex), "\(id)")
            if !id.isEmpty { #expect(self.id(in: tag) == id) }
        }
        #expect(Set(Self.ids.map { StateKeys.tag("im", $0) }).count == Self.ids.count)
        #expect(StateKeys.tag("im", "u%7D") == "{im:u%7D}", "an identifier without a brace is as it is")
        #expect(id(in: "{other:u}") == nil && id(in: "{:other:u}") == nil)
    }

    @Test func `keys have the tag`() async throws {
        let world = try StateWorld()
        try await world.connect()
        for id in Self.ids where !id.isEmpty {
            try await world.change(id, .mute(conversation: "c", level: .blocked, untilMs: nil))
            #expect(try await world.raw("EXISTS", "c:s:\(StateKeys.tag(StateWorld.app, id))") == 1, "\(id)")
            #expect(try await world.recipient(id).recipient.mute != nil)
        }
        await world.end()
    }
}
