// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore
import Support
import Testing

@testable import Worker

/// The stored form of deferred work. Records outlive the worker that wrote them.
@Suite(.timeLimit(.minutes(10))) struct DeferredTests {
    private static let raw = Array("{\"v\":1}\n\n".utf8)
    private static let uids = ["a", "名\n\"前", "c"]
    private static let places = Dictionary(uniqueKeysWithValues: uids.enumerated().map { (UTF8Key($1), $0) })

    private static func record(_ uid: String?, part: UInt8? = nil) -> ParkedRecord {
        var record = ParkedRecord(
            ParkedEvent(
                app: "im", id: "mabc", raw: raw,
                source: EventSource(
                    partition: 4, offset: 9, kafkaMs: 3, traceparent: Traceparent(TraceparentTests.good)),
                conversation: "c\"", part: part), uid: uid, cause: .retryAfter, dueMs: 17, writtenMs: 5)
        record.process = "1x"
        record.client = "production/default"
        record.formerNames = [7, 65_535]
        return record
    }

    private static var full: ParkedRecord {
        var record = record(uids[1])
        record.cause = .unclaimed
        record.dueMs = -400
        record.client = nil
        record.devices = ["phone", "p\"ad"]
        record.holdUntilMs = 99
        record.facts = [.accepted, .owesCount]
        record.silentConnections = [SilentConnection(device: "w\"eb", epoch: -4)]
        record.journal = JournalTests.full
        return record
    }

    /// The result of the reader of the topic.
    private enum Read: Equatable { case work(Deferred), marks, unknown, other }

    private static func read(_ bytes: [UInt8]) -> Read {
        switch bytes.withUnsafeBytes({ Deferred.read($0) { _, _ in uids } }) {
        case .work(let work): .work(work)
        case .marks: .marks
        case .unknown: .unknown
        case .other: .other
        }
    }

    @Test(arguments: [true, false]) func `deferred work is read as it was written`(byPlace: Bool) {
        var full = Self.full
        full.event = Self.record("a", part: 250).event
        let work = Deferred([Self.record("a", part: 250), full, Self.record("not in the list", part: 250)])
        #expect(Self.read(work.bytes(places: byPlace ? Self.places : [:])) == .work(work))
        #expect(work.key == "imc\"#250")
    }

    @Test func `an event with all its recipients is read as it was written`() {
        var all = Self.record(nil)
        all.facts = .countsSource
        #expect(Self.read(Deferred([all]).bytes()) == .work(Deferred([all])))
    }

    @Test func `members and parts of a later version are kept when it is written again`() {
        var work = Deferred([Self.record("a"), Self.full])
        work.later = [JSONTree.Member("new", .array([.number("1"), .string("x")]))]
        work.open[0].later = [UInt8(ascii: "q"), 2, 1, 2, UInt8(ascii: "Z"), 0]
        guard case .work(let again) = Self.read(work.bytes(places: Self.places)) else {
            Issue.record("it is not read")
            return
        }
        #expect(again == work && again.bytes(places: Self.places) == work.bytes(places: Self.places))
    }

    @Test func `a cause of a later version is kept, and its recipient decided anew when it is due`() {
        var work = Deferred([Self.record("a"), Self.record("c")])
        work.open[1].take(cause: "full_moon")
        #expect(work.open[1].cause == .behind)
        #expect(Self.read(work.bytes()) == .work(work))
    }

    @Test func `a case or a member that must be known waits for a worker that knows it`() {
        for text in [
            #"{"v":1,"case":"dues","app":"im"}"#, #"{"v":1,"case":"marks","app":"im","conv":"c","!key":2}"#,
            #"{"v":1,"case":"work","app":"im","id":"m","cause":"rate","due_ms":1,"at_ms":1,"!key":2}"#,
        ] {
            #expect(Self.read(Array((text + "\n").utf8)) == .unknown, "\(text)")
        }
    }

    @Test func `another form is no deferred work`() {
        for text in [
            "", "\n", "{}\n{}", #"{"v":1,"owed":"m"}"#, #"{"v":2,"case":"work"}"# + "\n", "[[[[[[\n", "null\nnull",
            #"{"v":1,"case":"work","app":"im"}"# + "\n",
        ] {
            #expect(Self.read(Array(text.utf8)) == .other, "\(text)")
        }
    }

    @Test func `damaged bytes never stop the reader`() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let whole = Deferred([Self.record("a"), Self.full]).bytes(places: Self.places)
        for _ in 0..<2_000 {
            var bytes = Array(whole.prefix(.random(in: 0...whole.count, using: &random)))
            for _ in 0..<3 {
                guard let place = bytes.indices.randomElement(using: &random) else { break }
                bytes[place] = .random(in: 0 ... .max, using: &random)
            }
            guard case .work(let work) = Self.read(bytes), !work.open.isEmpty else { continue }
            guard case .work(let again) = Self.read(work.bytes()) else {
                Issue.record("what was written cannot be read")
                return
            }
            #expect(again.bytes() == work.bytes())
        }
    }

    /// Contract 14, "Parked work": the bytes grow with the event and the number of open recipients, never with their product.
    @Test(arguments: [(730_000, 10_000), (550_000, 3_000), (1_000, 1), (900_000, 2_000)])
    func `an event is written once however many recipients wait`(size: Int, count: Int) {
        let raw = [UInt8](repeating: 32, count: size)
        let uids = (0..<count).map { "user-\($0)-1234567890" }
        let open = uids.enumerated().map { index, uid in
            var record = ParkedRecord(
                app: "im", uid: uid, raw: raw, cause: .rate, dueMs: Int64(index), writtenMs: 0, id: "mabc")
            record.devices = ["0f8fad5b-d9cb-469f-a165-\(100_000_000_000 + index)"]
            record.journal.append(
                Journal.Entry(device: record.devices[0], verdict: .parked, reason: "rate", atMs: 1, traits: .isTraced))
            return record
        }
        let places = Dictionary(uniqueKeysWithValues: uids.enumerated().map { (UTF8Key($1), $0) })
        let sizes = Deferred(open).divided(places: places).map { $0.bytes(places: places).count }
        #expect(sizes.reduce(0, +) < 3 * size + 200 * count + 500, "\(sizes)")
        #expect(sizes.allSatisfy { $0 < 1_048_576 })
    }

    // MARK: Stored records

    /// `Tests/Cases/parked.txt` has records of each form, and their content.
    @Test func `stored records of every form are understood`() throws {
        let lines = try Cases.text("parked.txt").split(separator: "\n").filter { !$0.hasPrefix("#") }
        var (forms, place) = (Set<Substring>(), 0)
        while place < lines.count {
            let words = lines[place].split(separator: " ", maxSplits: 1)
            let (form, end) = (words[0], try #require(words[1].lastIndex(of: " ")))
            let rest = String(words[1][words[1].index(after: end)...])
            var bytes = Array(words[1][..<end].utf8)
            if rest != "-" { bytes += [UInt8(ascii: "\n")] + (try #require(Hex.bytes(rest.utf8))) }
            let wanted = lines[(place + 1)...].prefix { $0.hasPrefix("  ") }
            #expect(Self.words(bytes, isEarlier: form == "1.0") == wanted.map { String($0.dropFirst(2)) })
            forms.insert(form)
            place += 1 + wanted.count
        }
        #expect(forms == ["work", "marks", "1.0"])
    }

    private static func words(_ bytes: [UInt8], isEarlier: Bool) -> [String] {
        bytes.withUnsafeBytes { bytes in
            switch Deferred.read(bytes, uids: { _, _ in ["a", "b", "c"] }) {
            case .work(let work): return isEarlier ? [] : work.open.map(words)
            case .marks(let marks): return isEarlier ? [] : marks.claims.map(OwedMarksTests.words)
            case .unknown: return ["unknown"]
            case .other: break
            }
            if let record = ParkedRecord(earlier: bytes, conversation: { _, _ in "of-raw" }) { return [words(record)] }
            return EarlierOwedClaim.read(bytes).map { [OwedMarksTests.words($0)] } ?? ["damaged"]
        }
    }

    private static func words(_ record: ParkedRecord) -> String {
        let (source, part) = (record.source, record.part.map { "#\($0)" } ?? "")
        var words = [
            "\(record.app) \(record.uid ?? "*") \(record.id.prefix(1)) \(record.id.dropFirst()): "
                + "\(record.conversation)\(part) from \(source.partition) \(source.offset) \(source.kafkaMs)",
            "\(record.cause.rawValue) at \(record.dueMs)", "written \(record.writtenMs)",
        ]
        func add(_ name: String, _ texts: [String]) {
            if !texts.isEmpty { words.append(([name] + texts).joined(separator: " ")) }
        }
        add("process", record.process.map { [$0] } ?? [])
        add("client", record.client.map { [$0] } ?? [])
        add("chunk", record.event.chunkName.map { ["\($0)"] } ?? [])
        add("devices", record.devices)
        add("journal", record.journal.entries.map(JournalTests.words))
        add("hold", record.holdUntilMs.map { ["\($0)"] } ?? [])
        add("facts", record.facts.isEmpty ? [] : ["\(record.facts.rawValue)"])
        add("silent", record.silentConnections.flatMap { [$0.device, "\($0.epoch)"] })
        add("names", record.formerNames.map { "\($0)" })
        add("traceparent", record.source.traceparent.map { [$0.text] } ?? [])
        add("later", record.later.isEmpty ? [] : ["1"])
        #expect(record.raw == Array(#"{"v":1}"#.utf8))
        return words.joined(separator: ", ")
    }

    @Test func `another form is no record of version 1`() {
        for text in ["", "\n", "{}\n{}", #"{"v":1,"owed":"m"}"#, #"{"v":2,"park":"share"}"# + "\n", "null\nnull"] {
            #expect(Array(text.utf8).withUnsafeBytes { ParkedRecord(earlier: $0) } == nil, "\(text)")
        }
    }
}
