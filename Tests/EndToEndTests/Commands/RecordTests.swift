// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Kafka
import LocalServers
import Processes
import Recording
import StageWords
import Support
import Testing

/// `carillon record` against a broker.
struct RecordTests {
    /// The lines of a recording, compressed or not.
    static func lines(_ path: String) throws -> [RecordLine] {
        let reader = try LineReader(path: path)
        let parser = JSONParser(maxBytes: RecordLine.bytesMax)
        var lines: [RecordLine] = []
        while let line = try reader.next() { lines.append(try #require(RecordLine(line, parser))) }
        return lines
    }

    private static let headers = [
        KafkaHeader(name: "trace", text: "t1"), KafkaHeader(name: "trace", value: nil),
        KafkaHeader(name: "raw", value: [0xFF, 0x00]),
    ]

    /// 2023-11-14T22:13:20Z. A time in seconds would count as absent.
    private static let origin: Int64 = 1_700_000_000_000

    /// Twelve records at 1000, 1010 … 1110 ms after the origin, by turns in two topics and all of their partitions.
    private static func fill(_ world: LocalCluster) throws {
        let topics = ["im.events", "im.user-state"]
        let writers = try topics.map { try KafkaTopicWriter(world.kafka, topic: $0) }
        for index in 0..<12 {
            let refused = Array("{\"n\":\(index)}".utf8).withUnsafeBytes { value in
                writers[index % 2].write(
                    key: nil, value: value, headers: index == 3 ? headers : [], partition: Int32(index / 2 % 3),
                    timestampMs: origin + 1000 + Int64(index) * 10)
            }
            if let refused { throw refused }
        }
        for writer in writers { _ = writer.finish() }
    }

    @Test func severalTopicsComeInTheOrderOfTheirTimesWithTheirHeaders() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        try await offPool { try Self.fill(world) }
        let both = ["record", "--config", path, "--topic", "events", "--topic", "im.user-state", "--json"]
        let file = world.folder.file("both.ndjson.zst")
        let run = try await offPool { try CommandRun(words: both + ["--out", file, "--until-end"]) }
        #expect(run.code == 0 && run.output.contains(#""records":12"#), "\(run.output)\(run.errors)")
        #expect(Array(try readFile(file).prefix(4)) == [0x28, 0xB5, 0x2F, 0xFD])
        let lines = try Self.lines(file)
        #expect(lines.map(\.timestampMs) == (0..<12).map { Self.origin + 1000 + Int64($0) * 10 })
        #expect(lines.map(\.topic) == (0..<12).map { $0 % 2 == 0 ? "im.events" : "im.user-state" })
        #expect(lines[3].headers == Self.headers.map { RecordLine.Header(name: $0.name, value: $0.value) })
        #expect(lines.allSatisfy { $0.timestampMs == Self.origin + 1030 || $0.headers.isEmpty })
        for (points, times) in [
            (
                ["--from", "2023-11-14T22:13:21.020Z", "--until", "time:\(Self.origin + 1060)"],
                [1020, 1030, 1040, 1050]
            ),
            (["--from", "time:\(Self.origin + 1080)", "--until", "2030-01-01", "--until-end"], nil),
            (["--from", "offset:1", "--until-end"], [1060, 1070, 1080, 1090, 1100, 1110]),
            (["--until", "offset:1"], [1000, 1010, 1020, 1030, 1040, 1050]),
            (["--from", "offset:9", "--until-end"], []),
        ] as [([String], [Int64]?)] {
            let part = world.folder.file("part.ndjson")
            let run = try await offPool { try CommandRun(words: both + points + ["--out", part]) }
            #expect(run.code == (times == nil ? 64 : 0), "\(points) \(run.errors)")
            if let times {
                #expect(try Self.lines(part).map(\.timestampMs) == times.map { Self.origin + $0 }, "\(points)")
            }
        }
        await world.close()
    }

    @Test func aWrongTopicLeavesTheFileAsItIs() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let file = try world.folder.write(Array("mine".utf8), to: "mine")
        let run = try await offPool {
            try CommandRun(
                "record", "--config", path, "--topic", "events", "--topic", "nowhere", "--out", file, "--until-end")
        }
        #expect(run.code == 1 && run.errors.contains("nowhere"))
        #expect(try readFile(file) == Array("mine".utf8))
        let parked = try await offPool {
            try CommandRun("record", "--config", path, "--topic", "parked", "--out", file, "--until-end", "--scrub")
        }
        #expect(parked.code == 64 && parked.errors.contains("carillon.parked has a format of the worker's own"))
        await world.close()
    }

    /// Dead letters keep what was written on them, are not written back by accident, and are tried again without it.
    @Test func aDeadLetterGoesBackOnlyWhereItIsSent() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let writer = try KafkaTopicWriter(world.kafka, topic: "push.dead-letter")
        let headers = [
            KafkaHeader(name: "carillon-error", text: "bad_event: missing at $.kind, byte 0"),
            KafkaHeader(name: "carillon-topic", text: "im.events"), KafkaHeader(name: "own", text: "1"),
        ]
        let refused = Array("{}".utf8).withUnsafeBytes { writer.write(key: nil, value: $0, headers: headers) }
        #expect(refused == nil && writer.finish())
        let file = world.folder.file("dead.ndjson")
        let record = try await offPool {
            try CommandRun("record", "--config", path, "--topic", "dead-letter", "--out", file, "--until-end")
        }
        #expect(record.code == 0, "\(record.errors)")
        #expect(try Self.lines(file).first?.headers.map(\.name) == ["carillon-error", "carillon-topic", "own"])
        let replay = ["replay", "--config", path, "--in", file, "--wait", "0"]
        let plain = try await offPool { try CommandRun(words: replay) }
        #expect(
            plain.code == 1 && plain.errors.contains("line 1 is a dead letter; carillon dlq redrive"), "\(plain.errors)"
        )
        #expect(try world.records(of: "push.dead-letter").count == 1)
        // Recorded where the topic had another name.
        let renamed = String(decoding: try readFile(file), as: UTF8.self).replacing(
            "push.dead-letter", with: "im.events")
        let other = try world.folder.write(Array(renamed.utf8), to: "renamed.ndjson")
        let again = try await offPool {
            try CommandRun("replay", "--config", path, "--in", other, "--wait", "0")
        }
        #expect(again.code == 1 && again.errors.contains("line 1 is a dead letter"))
        for (topic, kept) in [("events", ["own"]), ("dead-letter", ["carillon-error", "carillon-topic", "own"])] {
            let run = try await offPool { try CommandRun(words: replay + ["--topic", topic]) }
            #expect(run.code == 0, "\(run.errors)")
            let name = topic == "events" ? "im.events" : "push.dead-letter"
            let last = try #require(try world.records(of: name).last)
            #expect(last.headers.keys.sorted() == kept)
        }
        #expect(try world.records(of: "push.dead-letter").count == 2)
        await world.close()
    }
}
