// SPDX-License-Identifier: Apache-2.0
import Recording
import Testing

/// What is read of a dead letter's headers, and how dead letters are selected and counted.
@Suite struct DeadLetterTests {
    private static func note(_ error: String, _ more: (String, String)...) -> DeadLetterNote {
        let headers = [("carillon-error", error)] + more
        return DeadLetterNote(headers.map { RecordLine.Header(name: $0.0, value: Array($0.1.utf8)) })
    }

    @Test(
        arguments: [
            ("bad_event: unknown app at $.app, byte 20", "unknown app", "$.app"),
            ("bad_event: must be a string at $.to.uids[17], byte 9", "must be a string", "$.to.uids[]"),
            ("bad_event: empty record at $, byte 0", "empty record", "$"),
            // The last place counts, and one without is a cause alone.
            ("bad_event: cut at $x at $.a, byte 1", "cut at $x", "$.a"), ("bad_event: why", "why", nil),
            ("other", "other", nil), ("", "", nil),
        ] as [(String, String, String?)])
    func theCauseAndItsPlaceAreDistinguished(error: String, cause: String, path: String?) {
        #expect(Self.note(error).cause == cause && Self.note(error).path == path)
    }

    @Test func hostileHeadersAreCutOrPassedOver() {
        let long = String(repeating: "é", count: 40_000)
        let note = Self.note(
            long, ("carillon-topic", long), ("carillon-partition", "-7x"), ("carillon-offset", "99999999999999999999"))
        #expect(note.error.utf8.count <= 1_003 && note.topic == nil && note.partition == nil && note.offset == nil)
        let null = DeadLetterNote([RecordLine.Header(name: "carillon-topic", value: nil)])
        #expect(null.topic == nil && null.error.isEmpty)
        let broken = DeadLetterNote([RecordLine.Header(name: "carillon-topic", value: [0xFF])])
        #expect(broken.topic == nil)
    }

    @Test func onlyTheWorkersHeadersGo() {
        let headers = ["trace", "carillon-error", "carillon-x", "carillon-offset"].map {
            RecordLine.Header(name: $0, value: nil)
        }
        #expect(DeadLetterNote.others(headers).map(\.name) == ["trace", "carillon-x"])
    }

    @Test(
        arguments: [
            (DeadLetterChoice(), true), (DeadLetterChoice(reason: "unknown_app"), true),
            (DeadLetterChoice(reason: "Unknown App"), true), (DeadLetterChoice(reason: "unknown-kind"), false),
            // By the rule of today, whatever the words.
            (DeadLetterChoice(reason: "missing"), true), (DeadLetterChoice(reason: "issing"), false),
            (DeadLetterChoice(topic: "im.events"), true), (DeadLetterChoice(topic: "im.event"), false),
            (DeadLetterChoice(app: "late"), true), (DeadLetterChoice(app: "lat"), false),
            (DeadLetterChoice(reason: "unknown app", topic: "im.events", app: "im"), false),
            (DeadLetterChoice(reason: String(repeating: "x", count: 5_000)), false),
        ])
    func aChoiceTakesWhatItNames(choice: DeadLetterChoice, takes: Bool) {
        let note = Self.note("bad_event: unknown app at $.app, byte 20", ("carillon-topic", "im.events"))
        #expect(choice.takes(note, app: "late", rule: "missing") == takes)
    }

    @Test func aRecordWithoutAppMatchesNoChoice() {
        #expect(!DeadLetterChoice(app: "im").takes(Self.note("x"), app: nil, rule: nil))
        #expect(!DeadLetterChoice(topic: "t").takes(Self.note("x"), app: nil, rule: nil))
    }

    @Test func equalFaultsAreOneGroupWithItsAges() {
        var tally = DeadLetterTally()
        for (index, time) in [5, 3, nil, 9].enumerated() as EnumeratedSequence<[Int64?]> {
            tally.add(
                Self.note("bad_event: must be a string at $.to.uids[\(index)], byte \(index)"), app: "im", atMs: time,
                isAccepted: index == 0, rule: index == 0 ? nil : "wrong_type")
        }
        tally.add(Self.note("bad_event: unknown app at $.app, byte 2"), app: "x", atMs: 1, isAccepted: true, rule: nil)
        #expect(tally.sorted.map(\.count) == [4, 1] && tally.count == 5)
        let first = tally.sorted.first
        #expect(first?.oldestMs == 3 && first?.newestMs == 9 && first?.accepted == 1 && first?.rule == "wrong_type")
    }

    @Test func countlessCausesAreCountedTogether() {
        var tally = DeadLetterTally()
        for index in 0..<1_500 { tally.add(Self.note("c\(index)"), app: nil, atMs: nil, isAccepted: false, rule: nil) }
        #expect(tally.count == 1_500 && tally.sorted.count == 1_000 && tally.ungrouped == 500)
    }
}
