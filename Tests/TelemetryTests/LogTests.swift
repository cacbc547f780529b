// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@testable import Telemetry

struct LogTests {
    /// A pipe whose read end never waits.
    private struct Pipe: ~Copyable {
        let read: Int32
        let write: Int32

        init() {
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            (read, write) = (ends[0], ends[1])
            _ = fcntl(read, F_SETFL, O_NONBLOCK)
        }

        deinit {
            close(read)
            close(write)
        }

        func take() -> String {
            var out: [UInt8] = []
            var block = [UInt8](repeating: 0, count: 65536)
            while true {
                let got = Glibc.read(read, &block, block.count)
                guard got > 0 else { return String(decoding: out, as: UTF8.self) }
                out += block.prefix(got)
            }
        }
    }

    @Test func aLineHoldsTimeLevelMessageAndValues() throws {
        let pipe = Pipe()
        let log = Log(level: .info, fd: pipe.write).with(["shard": 3])
        log.info("ready", ["host": "a", "n": 5, "share": 0.5, "ok": true, "bad": .double(.nan)])
        let line = pipe.take()
        let expected =
            #","level":"info","msg":"ready","shard":3,"host":"a","n":5,"share":0.5,"ok":true,"bad":null}"# + "\n"
        #expect(line.hasSuffix(expected))
        let head = try #require(line.split(separator: "\"").dropFirst(3).first.map(String.init))
        #expect(head.count == 24 && head.hasSuffix("Z") && head.hasPrefix("20"))
    }

    @Test func belowTheLevelNothingIsBuiltOrWritten() {
        let pipe = Pipe()
        let log = Log(level: .warning, fd: pipe.write)
        var built = 0
        func value() -> LogValue {
            built += 1
            return 1
        }
        log.info("quiet", ["v": value()])
        #expect(built == 0 && pipe.take().isEmpty)
        let copy = log.with(["a": 1])
        copy.level = .debug
        log.debug("loud", ["v": value()])
        #expect(built == 1 && pipe.take().contains("loud"))
    }

    @Test func hostileTextCannotForgeALineOrSteerATerminal() {
        let pipe = Pipe()
        let log = Log(level: .debug, fd: pipe.write)
        log.error(
            "m",
            ["s": .string("a\"\\\n\r\u{1B}[31m\u{7F}\u{9B}\u{202E}\u{2028}é\u{0}"), "b": .bytes([0xFF, 0x41, 0xC0])])
        let line = pipe.take()
        let expected =
            #""s":"a\"\\\n\u000d\u001b[31m\u007f\u009b\u202e\u2028é\u0000","b":"\#u{FFFD}A\#u{FFFD}"}"# + "\n"
        #expect(line.hasSuffix(expected), "\(line)")
        #expect(line.utf8.filter { $0 < 0x20 } == [0x0A])
    }

    @Test func longValuesAndLinesAreCutAndSaySo() {
        let pipe = Pipe()
        let log = Log(level: .debug, fd: pipe.write)
        let long = String(repeating: "é\u{1}", count: 4000)
        log.info("m", ["a": .string(long), "b": .string(long), "c": .string(long), "d": .string(long), "e": 1])
        log.info("n", ["b": .bytes([UInt8](repeating: 0x80, count: 5000))])
        let lines = pipe.take().split(separator: "\n")
        #expect(lines.count == 2)
        for line in lines {
            #expect(line.utf8.count < 4096)
            #expect(line.hasSuffix(",\"cut\":true}"))
        }
    }

    @Test func aFullPipeDropsWholeLinesAndCountsThem() {
        let pipe = Pipe()
        let log = Log(level: .info, fd: pipe.write)
        let text = String(repeating: "x", count: 700)
        for number in 0..<1000 { log.info("flood", ["n": .int(number), "t": .string(text)]) }
        let lines = pipe.take().split(separator: "\n")
        #expect(log.dropped > 0)
        #expect(UInt64(lines.count) + log.dropped == 1000)
        #expect(lines.allSatisfy { $0.hasPrefix("{\"at\":") && $0.hasSuffix("}") })
        // The flags of the descriptor that others share are as they were.
        #expect(fcntl(pipe.write, F_GETFL) & O_NONBLOCK == 0)
        log.info("after")
        #expect(pipe.take().contains("after"))
    }

    @Test func aTornLineOnASocketIsEndedBeforeTheNext() {
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        let log = Log(level: .info, fd: ends[1])
        for _ in 0..<5000 { log.info("flood", ["t": .string(String(repeating: "x", count: 900))]) }
        #expect(log.dropped > 0)
        var out: [UInt8] = []
        func drain() {
            var block = [UInt8](repeating: 0, count: 65536)
            while case let got = read(ends[0], &block, block.count), got > 0 { out += block.prefix(got) }
        }
        drain()
        log.info("after")
        drain()
        let lines = String(decoding: out, as: UTF8.self).split(separator: "\n")
        #expect(lines.last?.hasPrefix("{\"at\":") == true)
        #expect(lines.filter { !$0.hasPrefix("{") || !$0.hasSuffix("}") }.count <= 1)
    }

    @Test func aRegularFileIsAppendedAtItsDescriptorsPosition() throws {
        let file = try #require(tmpfile())
        defer { fclose(file) }
        let fd = fileno(file)
        #expect(write(fd, "head\n", 5) == 5)
        Log(level: .info, fd: fd).info("one")
        lseek(fd, 0, SEEK_SET)
        var block = [UInt8](repeating: 0, count: 512)
        let got = read(fd, &block, block.count)
        #expect(String(decoding: block.prefix(max(0, got)), as: UTF8.self).hasPrefix("head\n{\"at\":"))
    }

    @Test func aBadDescriptorIsNoFault() {
        Log(level: .debug, fd: 100_000).error("nowhere")
        Log.off.error("nowhere")
    }

    @Test(
        arguments: [
            (0, 0, "1970-01-01T00:00:00.000Z"), (951_782_400, 5_000_000, "2000-02-29T00:00:00.005Z"),
            (1_795_188_622, 999_999_999, "2026-11-20T15:30:22.999Z"), (-1, 0, "1969-12-31T23:59:59.000Z"),
            (4_102_444_799, 0, "2099-12-31T23:59:59.000Z"),
        ] as [(Int64, Int64, String)])
    func timesAreWrittenInUTC(seconds: Int64, nanos: Int64, text: String) {
        #expect(Timestamp.text(seconds: seconds, nanos: nanos) == text)
        #expect(Timestamp.text(seconds: seconds) == text.prefix(19) + "Z")
    }
}

struct SecretTests {
    @Test func aSecretNeverPrintsItself() {
        struct Config { let password = Secret("hunter2") }
        var dumped = ""
        dump(Config(), to: &dumped)
        for text in ["\(Config())", String(reflecting: Config()), String(describing: Config().password), dumped] {
            #expect(text.contains("***") && !text.contains("hunter2"), "\(text)")
        }
    }

    @Test func aSecretGivesItsBytesOnRequest() {
        let secret = Secret("pä")
        #expect(secret.text == "pä")
        #expect(secret.withBytes { Array($0) } == Array("pä".utf8))
        #expect(secret == Secret(bytes: Array("pä".utf8)))
        #expect(secret != Secret("pa") && secret != Secret("pö"))
        #expect(Secret("").isEmpty && !secret.isEmpty)
    }
}
