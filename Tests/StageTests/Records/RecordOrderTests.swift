// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage

@Suite(.onStage(scenario: TokenPrefix.scenario)) struct RecordOrderTests {
    /// Records of up to 4 KB are checked several at a time and read after that, a longer one at once.
    @Test func longAndShortRecordsOfOneUserBeginInTheirOrder() throws {
        let longer = #","x":"\#(String(repeating: "a", count: 5_000))""#
        let seen = try Stage.here.play(
            state: [.bind("in-order")],
            events: (0..<50).map { .message("in-order-\($0)", to: ["in-order"], $0 % 7 == 3 ? longer : "") })
        let badges = (0..<50).map { seen.result(of: "in-order-\($0)")?["badge"]?.int }
        #expect(badges == (1...50).map { Int64($0) })
    }
}
