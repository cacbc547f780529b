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

    private static func record(_ uid: String?) -> ParkedRecord {
        var record = ParkedRecord(
            app: "im", uid: uid, raw: raw, cause: .retryAfter, dueMs: 17, writtenMs: 5, id: "mabc")
        record.conversation = "c\""
        record.process = "1x"
        record.client = "production/default"
        record.source = EventSource(partition: 4, offset: 9, kafkaMs: 3)
        record.formerNames = [7, 65_535]
        return record
    }

    private static var full: ParkedRecord {
        var record = record(uids[1])
        record.cause = .unclaimed
        record.dueMs = -400
        record.client = nil
        record.devices = ["phone", "p\"ad"]
        record.done = ["pc"]
        record.holdUntilMs = 99
        record.facts = [.accepted, .owesCount]
        record.silentConnections = [ParkedRecord.SilentConnection(device: "w\"eb", epoch: -4)]
        record.counts = [129, 0, 7]
        record.trace = [0, 255, 10]
        return record
    }

    private static func read(_ bytes: [UInt8]) -> Deferred.Reading {
        bytes.withUnsafeBytes { Deferred.read($0) { _, _ in uids } }
    }

    @Test(arguments: [true, false]) func `deferred work is read as it was written`(byPlace: Bool) {
        var work = Deferred([Self.record("a"), Self.full, Self.record("not in the list")])
        for index in work.open.indices { work.open[index].part = 250 }
        #expect(Self.read(work.bytes(places: byPlace ? Self.places : [:])) == .work(work))
        #expect(work.key == "imc\"#250")
    }

    @Test func `an event with all its recipients is read as it was written`() {
        var all = Self.record(nil)
        all.facts = .countsSource
        #expect(Self.read(Deferred([all]).bytes()) == .work(Deferred([all])))
    }

    /// As it is written from now on: letters and members never change.
    @Test func `a stored record of this form is understood`() throws {
        let head =
            #"{"v":1,"case":"work","app":"im","id":"mx","conv":"c","cause":"rate","due_ms":100,"at_ms":90,"kafka_ms":3,"partition":4,"offset":9,"open":26}"#
        let open: [UInt8] =
            [3, UInt8(ascii: "i"), 1, 2]
            + [21, UInt8(ascii: "u"), 1, UInt8(ascii: "z"), UInt8(ascii: "t"), 1, 20, UInt8(ascii: "d"), 2]
            + Array("pc".utf8) + [UInt8(ascii: "e"), 1, UInt8(ascii: "p"), UInt8(ascii: "s"), 2, 1] + Array("w".utf8)
            + [UInt8(ascii: "f"), 2, 0x80, 0x04]
        guard case .work(let work) = Self.read(Array(head.utf8) + [10] + open + Self.raw) else {
            Issue.record("it is not read")
            return
        }
        #expect(work.open.map(\.uid) == ["c", "z"] && work.open.allSatisfy { $0.raw == Self.raw && $0.cause == .rate })
        let last = try #require(work.open.last)
        #expect(last.dueMs == 110 && last.devices == ["pc"] && last.done == ["p"] && last.facts == .accepted)
        #expect(last.silentConnections == [ParkedRecord.SilentConnection(device: "w", epoch: -1)])
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
            #"{"v":1,"case":"marks","app":"im"}"#,
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
            _ = Self.read(bytes)
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
            record.trace = [UInt8](repeating: 1, count: 100)
            return record
        }
        let places = Dictionary(uniqueKeysWithValues: uids.enumerated().map { (UTF8Key($1), $0) })
        let sizes = Deferred(open).divided(places: places).map { $0.bytes(places: places).count }
        #expect(sizes.reduce(0, +) < 3 * size + 200 * count + 500, "\(sizes)")
        #expect(sizes.allSatisfy { $0 < 1_048_576 })
    }

    // MARK: Earlier forms

    /// As version 1.0 wrote it.
    @Test func `a recipient's record of version 1 is understood`() throws {
        let stored = """
            {"v":1,"park":"retry_after","app":"im","uid":"u","id":"mabc","due_ms":17,"at_ms":5,"kafka_ms":3,"partition":4,\
            "offset":9,"client":"production/default","devices":["phone"],"done":["pc"],"hold_ms":99,"flags":\(1 << 9 | 1 << 22),\
            "suspects":{"web":-4},"counts":"810007","names":[7],"trace":"00ff0a","mover":"1-2"}
            {"v":1}
            """
        let record = try #require(
            Array(stored.utf8).withUnsafeBytes { ParkedRecord(earlier: $0) { _, _ in "c" } })
        #expect(record.cause == .retryAfter && record.app == "im" && record.uid == "u" && record.id == "mabc")
        #expect(record.dueMs == 17 && record.writtenMs == 5 && record.holdUntilMs == 99)
        #expect(
            record.source == EventSource(partition: 4, offset: 9, kafkaMs: 3) && record.client == "production/default")
        #expect(record.devices == ["phone"] && record.done == ["pc"] && record.facts == [.accepted, .reached])
        #expect(record.silentConnections == [ParkedRecord.SilentConnection(device: "web", epoch: -4)])
        #expect(record.counts == [129, 0, 7] && record.formerNames == [7] && record.conversation == "c")
        #expect(record.trace == [0, 255, 10] && record.raw == Array("{\"v\":1}".utf8))
        #expect(Self.read(Array(stored.utf8)) == .other)
    }

    @Test func `an event's record of version 1 is understood`() throws {
        let stored =
            #"{"v":1,"park":"share","app":"im","id":"mabc","conv":"g","process":"1x","due_ms":17,"at_ms":5}"# + "\n{}"
        let record = try #require(Array(stored.utf8).withUnsafeBytes { ParkedRecord(earlier: $0) })
        #expect(record.uid == nil && record.conversation == "g" && record.process == "1x")
    }

    @Test func `another form is no record of version 1`() {
        for text in ["", "\n", "{}\n{}", #"{"v":1,"owed":"m"}"#, #"{"v":2,"park":"share"}"# + "\n", "null\nnull"] {
            #expect(Array(text.utf8).withUnsafeBytes { ParkedRecord(earlier: $0) } == nil, "\(text)")
        }
    }
}
