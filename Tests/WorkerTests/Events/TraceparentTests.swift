// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

/// The header's form by W3C Trace Context, section 3.2.
struct TraceparentTests {
    static let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test(arguments: [good, "00-0000000000000000ce929d0e0e4736aa-00f067aa0ba902b7-ff"])
    func `a well-formed header goes on as it is`(text: String) {
        #expect(Traceparent(text)?.text == text)
    }

    @Test(arguments: ["cc" + good.dropFirst(2), "cc" + good.dropFirst(2) + "-what.comes_later"])
    func `a header of a later version goes on as one of version 00`(text: String) {
        #expect(Traceparent(text)?.text == Self.good)
    }

    @Test(arguments: [
        "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", good + "-x", good + "0",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
    ])
    func `a malformed header is none`(text: String) {
        #expect(Traceparent(text) == nil)
    }
}
