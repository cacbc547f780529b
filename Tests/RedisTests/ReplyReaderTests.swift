// SPDX-License-Identifier: Apache-2.0
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
        var reader = try ReplyReader(replyBytesMax: limit)
        var out: [String] = []
        for piece in pieces {
            piece.withUnsafeBytes { reader.feed($0) }
            reading: while true {
                switch reader.next() {
                case .needsBytes: break reading
                case .broken: return out + ["broken: " + reader.brokenText]
                case .tooLarge:
                    out.append("too large")
                    reader.release()
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

    private static func bulk(_ count: Int) -> [UInt8] {
        Array("$\(count)\r\n".utf8) + [UInt8](repeating: 65, count: count) + [13, 10]
    }

    private static func elements(_ count: Int) -> [UInt8] {
        Array("*\(count)\r\n".utf8) + Array(String(repeating: ":1\r\n", count: count).utf8)
    }

    @Test(
        arguments: [
            elements(100_000), bulk(100_000), Array("*64\r\n".utf8) + (0..<64).flatMap { _ in bulk(2000) },
            Array("*3\r\n".utf8) + bulk(5) + bulk(70_000) + bulk(5),
            Array("*2\r\n*2\r\n".utf8) + bulk(70_000) + bulk(80_000) + elements(3),
            Array("*2\r\n".utf8) + elements(30_000) + bulk(90_000),
        ])
    func aReplyOverTheLimitIsPassedOverAndTheNextOneIsRead(large: [UInt8]) throws {
        let stream = Array("+A\r\n".utf8) + large + Self.bulk(3) + large + Array(":7\r\n".utf8)
        let expected = ["+A", "too large", "\"AAA\"", "too large", ":7"]
        #expect(try read([stream], limit: 65536) == expected)
        for piece in [1, 7, 4096] {
            let pieces = stride(from: 0, to: stream.count, by: piece).map {
                Array(stream[$0..<min($0 + piece, stream.count)])
            }
            #expect(try read(pieces, limit: 65536) == expected, "in pieces of \(piece)")
        }
    }

    /// Fed as a connection does it; the most that was held at any time.
    private func held(_ stream: [UInt8]) throws -> Int {
        var reader = try ReplyReader(replyBytesMax: 65536)
        var held = 0
        for start in stride(from: 0, to: stream.count, by: 4096) {
            stream[start..<min(start + 4096, stream.count)].withUnsafeBytes { reader.feed($0) }
            while case let next = reader.next(), next != .needsBytes {
                try #require(next == .tooLarge)
                reader.release()
            }
            held = max(held, reader.heldBytes)
        }
        return held
    }

    @Test func skippedValuesOfAnyLengthCostNoMemory() throws {
        for make in [Self.bulk, Self.elements] {
            let (few, many) = (try held(make(200_000)), try held(make(800_000)))
            #expect(few == many && many < 300_000, "\(few) and \(many) bytes")
        }
    }

    @Test(arguments: ["+", "-", ":", "$", "*", "*1\r\n$"])
    func aLineWithoutEndIsAFault(start: String) throws {
        let out = try read([Array(start.utf8)] + (0..<40).map { _ in [UInt8](repeating: 49, count: 4096) })
        #expect(out.last?.hasPrefix("broken: ") == true, "\(out)")
    }

    @Test func aCarriageReturnAloneEndsNoLength() throws {
        let bytes = Array("$2143884764\rxyz\r\n".utf8)
        for pieces in [[bytes], bytes.map { [$0] }] {
            #expect(try read(pieces).last?.hasPrefix("broken: ") == true)
        }
    }

    @Test func aStringThatIsSaidToBeLongerThanAnyIsAFault() throws {
        #expect(try read([Array("$9000000000000\r\nabc".utf8)]).last?.hasPrefix("broken: ") == true)
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
        var reader = try ReplyReader(replyBytesMax: 4096)
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
        var reader = try ReplyReader(replyBytesMax: 4096)
        Array("$\(text.utf8.count)\r\n\(text)\r\n".utf8).withUnsafeBytes { reader.feed($0) }
        #expect(reader.next() == .reply)
        #expect(RedisReply(reader.arena, 0).int64 == number)
    }

    @Test(arguments: [
        ("NOAUTH Authentication required.", RedisFault.Code.authentication), ("WRONGPASS x", .authentication),
        ("LOADING x", .loading), ("READONLY x", .readOnly), ("MOVED 3999 127.0.0.1:6381", .moved),
        ("ASK 1 h:1", .ask), ("TRYAGAIN x", .tryAgain), ("CROSSSLOT x", .crossSlot), ("MASTERDOWN x", .masterDown),
        ("NOPERM x", .noPermission), ("ERR oh script: 5e, on @user_script:3.", .scriptFailed),
        ("ERR The user executing the script can't run this command script: 5e, on @user_script:3.", .noPermission),
        ("WRONGTYPE x script: 5e, on @user_script:3.", .wrongType),
        (
            "ERR Script attempted to access a non local key in a cluster node script: 5e, on @user_script:3.",
            .tryAgain
        ),
        (
            "ERR Script attempted to execute a command while the cluster is down script: 5e, on @user_script:3.",
            .clusterDown
        ),
        ("NOSCRIPT x", .noScript), ("OOM x", .outOfMemory), ("BUSY x", .busy), ("WRONGTYPE x", .wrongType),
        ("CLUSTERDOWN x", .clusterDown), ("ERR x", .refused), ("", .refused), ("\u{1}", .refused),
    ])
    func errorRepliesAreTyped(text: String, code: RedisFault.Code) {
        let fault = Array(text.utf8).withUnsafeBytes { RedisFault(errorReply: $0) }
        #expect(fault.code == code && fault.text == text)
    }

    /// What is about the server, and not about a key, must never be taken for a key that is not there.
    @Test(arguments: [
        "MOVED 1 h:1", "ASK 1 h:1", "CLUSTERDOWN x", "TRYAGAIN x", "LOADING x", "MASTERDOWN x", "BUSY x", "NOAUTH x",
        "NOPERM x", "ERR upstream failure", "SOMETHING new", "",
    ])
    func aServersFaultIsNoFaultOfAKey(text: String) {
        let fault = Array(text.utf8).withUnsafeBytes { RedisFault(errorReply: $0) }
        #expect(fault.scope == .server && !fault.isLasting && !fault.refusesWrite)
        let own = fault.code.hint.map { "\(fault.code.name): \($0)" } ?? fault.code.name
        #expect(fault.publicText == own, "the server's text may quote a key")
    }

    @Test func aMissingRightIsReportedWithItsCure() {
        let fault = Array("NOPERM User bob has no permissions to access the 'c:secret' key".utf8)
            .withUnsafeBytes { RedisFault(errorReply: $0) }
        #expect(fault.publicText.contains("carillon check") && !fault.publicText.contains("secret"))
    }

    @Test func aLongErrorIsCut() {
        let fault = [UInt8](repeating: 0xFF, count: 5000).withUnsafeBytes { RedisFault(errorReply: $0) }
        #expect(fault.text.unicodeScalars.count <= 200 && fault.code == .refused)
    }
}
