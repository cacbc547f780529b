import Support
import Testing

@testable import Redis

extension RedisReply {
    /// The reply as text, through every accessor that a caller has.
    var text: String {
        switch kind {
        case .integer: return ":\(int64 ?? .min)"
        case .null: return "nil"
        case .string: return "\"\(string ?? "?")\""
        case .status: return "+\(string ?? "?")"
        case .error: return "-" + String(decoding: bytes, as: UTF8.self)
        case .array:
            var byForEach: [String] = []
            forEach { byForEach.append($0.text) }
            let byIndex = (0..<count).map { self[$0].text }
            var byPair: [String] = []
            forEachPair { byPair += [$0.text, $1.text] }
            #expect(byForEach == byIndex)
            #expect(Array(byIndex.prefix(byPair.count)) == byPair && byPair.count == count / 2 * 2)
            return "[" + byForEach.joined(separator: ",") + "]"
        }
    }
}

struct ReplyReaderTests {
    /// Feeds the pieces and gives all replies as text; the last entry tells a fault.
    private func read(_ pieces: [[UInt8]], limit: Int = 1 << 20) throws -> [String] {
        let reader = try ReplyReader(replyBytesMax: limit)
        var out: [String] = []
        for piece in pieces {
            piece.withUnsafeBytes { reader.feed($0) }
            reading: while true {
                switch reader.next() {
                case .needsBytes: break reading
                case .broken: return out + ["broken: " + reader.brokenText]
                case .reply:
                    out.append(RedisReply(reader.arena, 0).text)
                    reader.release()
                }
            }
        }
        return out
    }

    private static let stream =
        "+OK\r\n:-42\r\n$5\r\nhe\r\no\r\n$-1\r\n*-1\r\n*0\r\n-ERR no\r\n$0\r\n\r\n"
        + "*4\r\n$1\r\na\r\n:1\r\n*2\r\n*0\r\n$1\r\nb\r\n+x\r\n*2\r\n*1\r\n*1\r\n:7\r\n*1\r\n:8\r\n"
    private static let texts = [
        "+OK", ":-42", "\"he\r\no\"", "nil", "nil", "[]", "-ERR no", "\"\"", "[\"a\",:1,[[],\"b\"],+x]",
        "[[[:7]],[:8]]",
    ]

    @Test func everyTypeIsRead() throws {
        #expect(try read([Array(Self.stream.utf8)]) == Self.texts)
    }

    @Test func aStreamMayBeCutAnywhere() throws {
        let bytes = Array(Self.stream.utf8)
        for cut in 0...bytes.count {
            #expect(try read([Array(bytes[..<cut]), Array(bytes[cut...])]) == Self.texts, "cut at \(cut)")
        }
        #expect(try read(bytes.map { [$0] }) == Self.texts)
    }

    @Test(arguments: [
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", ":12x\r\n", ":\r\n",
        ":99999999999999999999\r\n",
        "$-2\r\n", "$x\r\n", "*-2\r\n", "*99999999999\r\n", "*x\r\n", "hello\r\n", "%1\r\n", "\r\n", "$3\r\nabcde\r\n",
    ])
    func hostileBytesAreAFaultAndNoCrash(text: String) throws {
        let out = try read([Array(text.utf8), Array("+OK\r\n".utf8)])
        #expect(out.last?.hasPrefix("broken: ") == true || out.allSatisfy { $0 != "+OK" }, "\(out)")
    }

    @Test func aClaimedSizeReservesNothing() throws {
        #expect(try read([Array("*2147483647\r\n:1\r\n".utf8), Array("$2000000000\r\nabc".utf8)]) == [])
    }

    @Test func aReplyOverTheLimitIsAFault() throws {
        let elements = Array("*1000000\r\n".utf8) + Array(String(repeating: ":1\r\n", count: 100_000).utf8)
        #expect(try read([elements], limit: 65536) == ["broken: the reply is over the limit"])
        let long = Array("$1000000\r\n".utf8) + [UInt8](repeating: 65, count: 100_000)
        #expect(try read([long], limit: 65536) == ["broken: the reply is over the limit"])
        let many =
            Array("*64\r\n".utf8)
            + (0..<64).flatMap { _ in Array("$2000\r\n".utf8) + [UInt8](repeating: 65, count: 2000) + [13, 10] }
        #expect(try read([many], limit: 65536) == ["broken: the reply is over the limit"])
    }

    @Test(arguments: Array(1...20) as [UInt64])
    func noiseNeverCrashes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let alphabet = Array("*$:+-\r\n0123456789ab\u{0}".utf8)
        for _ in 0..<300 {
            let pieces = (0..<4).map { _ in
                (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                    Bool.random(using: &random)
                        ? alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                        : [13, 10][Int.random(in: 0..<2, using: &random)]
                }
            }
            _ = try read(pieces, limit: 65536)
        }
    }

    @Test func aShortAnswerGivesNullsInPlaceOfATrap() throws {
        let reader = try ReplyReader(replyBytesMax: 4096)
        Array("*1\r\n$2\r\n12\r\n".utf8).withUnsafeBytes { reader.feed($0) }
        #expect(reader.next() == .reply)
        let reply = RedisReply(reader.arena, 0)
        #expect(reply[1].isNull && reply[-1].isNull && reply[0][0].isNull)
        #expect(reply[0].int64 == 12 && reply[0].isText("12") && !reply[0].isText("1") && !reply.isText(""))
        #expect(reply.string == nil && reply.int64 == nil && reply.bytes.isEmpty)
    }

    @Test(
        arguments: [
            ("0", 0), ("-0", 0), ("9223372036854775807", .max), ("-9223372036854775808", .min),
            ("9223372036854775808", nil),
            ("", nil), ("-", nil), ("1a", nil), (" 1", nil), ("123456789012345678901", nil),
        ] as [(String, Int64?)])
    func decimalStringsAreNumbers(text: String, number: Int64?) throws {
        let reader = try ReplyReader(replyBytesMax: 4096)
        Array("$\(text.utf8.count)\r\n\(text)\r\n".utf8).withUnsafeBytes { reader.feed($0) }
        #expect(reader.next() == .reply)
        #expect(RedisReply(reader.arena, 0).int64 == number)
    }

    @Test(arguments: [
        ("NOAUTH Authentication required.", RedisFault.Code.authentication), ("WRONGPASS x", .authentication),
        ("LOADING x", .loading), ("READONLY x", .readOnly), ("MOVED 3999 127.0.0.1:6381", .moved),
        ("ASK 1 h:1", .moved),
        ("NOSCRIPT x", .noScript), ("OOM x", .outOfMemory), ("BUSY x", .busy), ("WRONGTYPE x", .wrongType),
        ("CLUSTERDOWN x", .clusterDown), ("ERR x", .refused), ("", .refused), ("\u{1}", .refused),
    ])
    func errorRepliesAreTyped(text: String, code: RedisFault.Code) {
        let fault = Array(text.utf8).withUnsafeBytes { RedisFault(errorReply: $0) }
        #expect(fault.code == code && fault.text == text)
    }

    @Test func aLongErrorIsCut() {
        let fault = [UInt8](repeating: 0xFF, count: 5000).withUnsafeBytes { RedisFault(errorReply: $0) }
        #expect(fault.text.unicodeScalars.count <= 200 && fault.code == .refused)
    }
}
