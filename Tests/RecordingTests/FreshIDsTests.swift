// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing

@testable import Recording

/// What a replay renames, and what it leaves.
@Suite struct FreshIDsTests {
    private static func fresh(
        _ record: String, pass: Int = 0, tag: String = "t4g", seqs: ClosedRange<Int64>? = nil, startMs: Int64 = 1000
    ) throws -> String {
        let fresh = FreshIDs(tag: tag, pass: pass, seqs: seqs, startMs: startMs)
        return String(decoding: fresh.apply(to: try JSONTree(parsing: Array(record.utf8))).bytes, as: UTF8.self)
    }

    @Test(
        arguments: [
            (#"{"event_id":"e1","msg_id":"m1","uid":"bob"}"#, #"{"event_id":"e1~t4g","msg_id":"m1~t4g","uid":"bob"}"#),
            // What is revoked is named as the message was.
            (
                #"{"msg_id":"r1","revoke":{"target_msg_id":"m1","badge":"keep"}}"#,
                #"{"msg_id":"r1~t4g","revoke":{"target_msg_id":"m1~t4g","badge":"keep"}}"#
            ),
            (#"{"kind":"ack","msg_ids":["m1","m2"]}"#, #"{"kind":"ack","msg_ids":["m1~t4g","m2~t4g"]}"#),
            (#"{"msg_id":5,"revoke":"m1","msg_ids":"m1"}"#, #"{"msg_id":5,"revoke":"m1","msg_ids":"m1"}"#),
            // An id is none where the contract has none of that name.
            (#"{"push":{"payload":{"msg_id":"m1"}},"token":{"device":"d"}}"#, nil),
            (#"{"event_id":""}"#, nil), (#"["event_id"]"#, nil),
        ] as [(String, String?)])
    func idsAndWhatRefersToThemAreRenamed(record: String, renamed: String?) throws {
        #expect(try Self.fresh(record) == renamed ?? record)
    }

    @Test func anIdKeepsToItsLimitAndStaysOnesOwn() throws {
        let fresh = FreshIDs(tag: "12345678", pass: 1_000_000, seqs: nil, startMs: 0)
        let ids = (1...64).map { String(repeating: "a", count: $0) } + [String(repeating: "é", count: 32)]
        let renamed = ids.map { fresh.id($0) }
        #expect(renamed.allSatisfy { $0.utf8.count <= 64 && $0.hasSuffix("~12345678lfls") })
        #expect(Set(renamed).count == ids.count)
        // Its event is bad, and remains so.
        let long = String(repeating: "a", count: 65)
        #expect(fresh.id(long) == long)
    }

    @Test func passesAndReplaysHaveNoIdInCommon() {
        let names = [("a", 0), ("a", 1), ("b", 0)].map {
            FreshIDs(tag: $0.0, pass: $0.1, seqs: nil, startMs: 0).id("m1")
        }
        #expect(Set(names).count == 3)
    }

    /// A read of one pass never covers a message of a later one, and covers what it covered within its own.
    @Test(arguments: [(1, 5000), (7, 7), (4_000_000_000, 4_000_100_000)] as [(Int64, Int64)])
    func sequenceNumbersMoveTogetherAboveAllEarlierOnes(low: Int64, high: Int64) throws {
        func numbers(_ pass: Int, _ startMs: Int64) throws -> (low: Int64, high: Int64) {
            let record = #"{"server_seq":\#(low),"up_to_seq":\#(high)}"#
            let text = try Self.fresh(record, pass: pass, seqs: low...high, startMs: startMs)
            let tree = try JSONTree(parsing: Array(text.utf8))
            return (try #require(tree["server_seq"]?.int), try #require(tree["up_to_seq"]?.int))
        }
        let startMs: Int64 = 1_790_000_000_000
        var highest: Int64 = high
        for (pass, start) in [(0, startMs), (1, startMs), (2, startMs), (0, startMs + 60_000)] {
            let (one, other) = try numbers(pass, start)
            #expect(other - one == high - low)
            #expect(one > highest)
            highest = other
        }
    }

    @Test func aNumberThatWouldLeave64BitsStays() throws {
        let record = #"{"server_seq":9223372036854775807}"#
        #expect(try Self.fresh(record, seqs: 1...9_223_372_036_854_775_807, startMs: 1_790_000_000_000) == record)
    }

    @Test func withoutChangesTheBytesStay() {
        let odd = Array(#" {"event_id" : "e1", "a":1.0e0 }"#.utf8)
        #expect(ReplayRewriter(shift: nil, fresh: nil).apply(to: odd) == odd)
        let fresh = ReplayRewriter(
            shift: TimeShift(byMs: 5), fresh: FreshIDs(tag: "t", pass: 0, seqs: nil, startMs: 0))
        for none in ["no json", "[1]", "", "\u{0}"] { #expect(fresh.apply(to: Array(none.utf8)) == Array(none.utf8)) }
        #expect(
            fresh.apply(to: Array(#"{"event_id":"e","sent_ms":1700000000000}"#.utf8))
                == Array(#"{"event_id":"e~t","sent_ms":1700000000005}"#.utf8))
    }
}
