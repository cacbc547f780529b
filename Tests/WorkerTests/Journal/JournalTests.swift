// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Support
import Testing

@testable import Worker

struct JournalTests {
    /// One entry of each kind.
    static var full: Journal {
        var journal = Journal()
        journal.append(
            Journal.Entry(
                device: "phone", verdict: .parked, reason: "rate", atMs: 1_763_600_000_000,
                pushID: PushID(high: 1, low: .max),
                traits: [.isTraced, .isResumed]))
        journal.append(
            Journal.Entry(
                device: "p\"c", verdict: .rejected, reason: "Unregistered", atMs: 1_763_600_000_009,
                pushID: PushID(high: .max, low: 2), badge: -3, status: 410, attempts: 2, latencyMs: 31,
                countedReason: 46, credential: 7, traits: [.counts, .isTraced, .isAddedByClient]))
        journal.append(Journal.Entry(unrecorded: "web", .online, atMs: 1_763_600_000_010))
        return journal
    }

    static func words(_ entry: Journal.Entry) -> String {
        let traits = [(Journal.Entry.Traits.counts, "counts"), (.isTraced, "traced"), (.isResumed, "resumed")]
            .filter { entry.traits.contains($0.0) }.map(\.1)
        return
            ([entry.device ?? "-", entry.verdict.rawValue, entry.reason.isEmpty ? "-" : entry.reason, "\(entry.atMs)"]
            + traits)
            .joined(separator: "/")
    }

    private static func journal(_ entries: (String?, Verdict, Journal.Entry.Traits)...) -> Journal {
        entries.reduce(into: Journal()) { journal, entry in
            journal.append(
                Journal.Entry(device: entry.0, verdict: entry.1, reason: "\(entry.1)", atMs: 1, traits: entry.2))
        }
    }

    @Test func `each device that ended is named once, and one that waits is not`() {
        #expect(Self.full.endedDevices == ["p\"c", "web"])
        let again = Self.journal(("a", .accepted, .counts), ("a", .accepted, []), (nil, .suppressed, .counts))
        #expect(again.endedDevices == ["a"])
    }

    @Test func `the trace of a user outside the sample begins with a failure`() {
        let journal = Self.journal(
            ("a", .parked, .isTraced), ("b", .rejected, .counts), ("c", .expired, .isTraced),
            ("d", .accepted, .isTraced))
        #expect(journal.traceStart(isSampled: true) == 0 && journal.traceStart(isSampled: false) == 2)
        #expect(Self.journal(("a", .accepted, .isTraced)).traceStart(isSampled: false) == nil)
        #expect(Self.journal(("a", .accepted, .counts)).traceStart(isSampled: true) == nil)
    }

    @Test func `waits are left out only where nothing ended`() {
        var journal = Self.full
        journal.leaveOutWaits()
        #expect(journal == Self.full)
        journal = Self.journal(("a", .parked, .isTraced))
        journal.leaveOutWaits()
        #expect(journal.isEmpty)
    }

    // MARK: Marks

    private static var subject: CountedSubject { CountedSubject(app: "im", name: "order", task: "spring") }

    private static func counts(_ journal: Journal, _ subject: CountedSubject = subject) -> (MarkCounts, [UInt8])? {
        var bytes: [UInt8] = []
        MarkCounts.write(journal, record: 0xABCD, subject, .alert, .bulk) { bytes += $0 }
        bytes += [1, 2]
        return bytes.withUnsafeBytes { raw in
            var rest = raw[...]
            return MarkCounts.take(&rest).map { ($0, Array(rest)) }
        }
    }

    private static func ends(_ count: Int) -> Journal {
        (0..<count).reduce(into: Journal()) { journal, number in
            journal.append(
                Journal.Entry(
                    device: number == 0 ? nil : "d\(number)", verdict: .accepted, reason: "ok",
                    atMs: 500_000 * StatisticsKey.hourMs, countedReason: UInt8(number), credential: 9, traits: .counts))
        }
    }

    @Test func `a mark keeps the ends of its recipient as they count`() throws {
        for (name, task) in [("", ""), ("RC:TxtMsg", ""), ("", "t"), ("order", "spring")] {
            let subject = CountedSubject(app: "im", name: name, task: task)
            for count in 1...20 {
                let (counts, rest) = try #require(Self.counts(Self.ends(count), subject))
                #expect(counts.record == 0xABCD && rest == [1, 2])
                #expect(counts.name == subject.name && counts.task == subject.task)
                #expect(counts.outcomes.count == min(count, MarkCounts.outcomesMax))
                for (number, one) in counts.outcomes.enumerated() {
                    #expect(one.reason == number && one.credential == 9 && one.isSent)
                    #expect(one.device == (number == 0 ? 0 : MarkCounts.short("d\(number)")))
                    let counted = counts.counted(one)
                    #expect(counted.hour(now: 500_010) == 500_000 && counted.lane == .bulk && counted.push == .alert)
                }
            }
        }
    }

    @Test func `waits, and ends that do not count, leave a mark without counts`() {
        #expect(Self.counts(Self.journal(("a", .parked, .isTraced), ("b", .accepted, .isTraced))) == nil)
    }

    @Test func `an end in another try's mark counts again as it counted there`() throws {
        for (verdict, kind) in zip(Verdict.allCases, CountedOutcome.Kind.allCases) where verdict != .parked {
            var journal = Journal()
            let end = Journal.Entry(
                verdict: verdict, reason: "Forbidden", atMs: 500_000 * StatisticsKey.hourMs, attempts: 1,
                countedReason: CountedReason.code("Forbidden"), credential: 3, traits: .counts)
            journal.append(end)
            let (counts, _) = try #require(Self.counts(journal))
            let counted = try #require(counts.outcomes.first.map(counts.counted))
            #expect(counted.kind == kind)
            #expect(Journal.Entry(counted, nowMs: 500_001 * StatisticsKey.hourMs) == end)
        }
    }

    @Test func `bytes of another version are no counts`() {
        for bytes: [UInt8] in [
            [], [1, 2, 3], [0x80], [0x81, 0, 0, 0], [0x81, 0, 0, 0, 0, 7, 0, 0, 0], Array("d1:x".utf8),
        ] {
            let read = bytes.withUnsafeBytes { raw -> (MarkCounts?, [UInt8]) in
                var rest = raw[...]
                let counts = MarkCounts.take(&rest)
                return (counts, Array(rest))
            }
            if read.0 == nil { #expect(read.1 == bytes) } else { #expect(read.0?.outcomes.isEmpty ?? false) }
        }
    }

    // MARK: Earlier records

    /// The trace and the counts of an earlier record are about the same ends.
    @Test func `the three lists of an earlier record become one journal`() {
        var written = Journal()
        for entry in Self.full.entries where entry.device != "web" { written.append(entry) }
        var (counts, trace): ([UInt8], [UInt8]) = ([], [])
        MarkCounts.write(written, record: 0, Self.subject, .alert, .direct) { counts += $0 }
        TraceBytes.write(written, from: 0, sentMs: 1, id: "", msgID: "m", eventID: "e", facts: []) { trace += $0 }
        func words(_ counts: [UInt8], _ trace: [UInt8]) -> [String] {
            Journal(done: ["p\"c", "web"], counts: counts, trace: trace, writtenMs: 1_763_600_000_050).entries.map(
                Self.words)
        }
        #expect(
            words(counts, trace) == [
                "phone/parked/rate/1763600000000/traced/resumed",
                "p\"c/rejected/Unregistered/1763600000009/counts/traced/resumed",
                "web/suppressed/-/1763600000050",
            ])
        #expect(
            words(counts, []) == [
                "p\"c/rejected/Unregistered/1763596800000/counts", "web/suppressed/-/1763600000050",
            ])
        #expect(words([], []) == ["p\"c/suppressed/-/1763600000050", "web/suppressed/-/1763600000050"])
        #expect(words([1, 2], [9]) == words([], []))
    }
}
