// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore
import Support
import Testing

@testable import Worker

/// The stored form of owed claims. Records outlive the worker that wrote them.
@Suite(.timeLimit(.minutes(10))) struct OwedMarksTests {
    /// All that a claim says.
    static func words(_ owed: OwedClaim) -> String {
        let (request, subject) = (owed.request, owed.request.subject)
        var words = [
            "\(request.app) \(request.uid) \(subject.kind.rawValue) \(subject.id): \(subject.conversation)",
            "sent \(subject.sentMs)",
        ]
        if let seq = subject.seq { words.append("seq \(seq)") }
        words.append("until \(subject.expireAtMs)")
        if request.counted { words.append("counts") }
        if let revoke = subject.revoke { words.append("\(revoke.badge.rawValue) \(revoke.targetMsgID)") }
        if subject.clearsOnRead { words.append("clears \(owed.eventID)") }
        if !owed.note.isEmpty { words.append("mark \(Hex.string(owed.note))") }
        return words.joined(separator: ", ")
    }

    private static func words(_ marks: OwedMarks) -> [String] {
        ["\(marks.app) \(marks.conversation) \(marks.part.map { "\($0)" } ?? "-")"] + marks.claims.map(words)
    }

    private static func read(_ bytes: [UInt8]) -> OwedMarks? {
        bytes.withUnsafeBytes {
            guard case .marks(let marks) = Deferred.read($0, uids: { _, _ in nil }) else { return nil }
            return marks
        }
    }

    private static func claim(
        _ uid: String = "u", _ kind: PairKind = .message, _ id: String = "m", conversation: String = "c",
        sentMs: Int64 = 1, seq: Int64? = nil, revoke: Message.Revoke? = nil, expireAtMs: Int64 = 2,
        counted: Bool = false, clears: String? = nil, note: [UInt8] = []
    ) -> OwedClaim {
        let subject = ClaimSubject(
            kind: kind, id: id, conversation: kind == .liveActivity ? "" : conversation, sentMs: sentMs, seq: seq,
            revoke: revoke, expireAtMs: expireAtMs, clearsOnRead: clears != nil)
        var claim = OwedClaim(
            ClaimRequest(app: "im", uid: uid, subject, counted: counted, nowMs: 3), eventID: clears ?? "")
        claim.note = note
        return claim
    }

    private static func marks(_ claims: [OwedClaim], conversation: String = "c", part: UInt8? = nil) -> OwedMarks {
        OwedMarks(app: "im", conversation: conversation, part: part, claims: claims)
    }

    private static let rows: [[OwedClaim]] = [
        [claim()], [claim("", .message, "")], [claim("名\n\"前", counted: true, note: [0x81, 0, 255])],
        [claim(sentMs: .min, seq: .max, expireAtMs: .max), claim(sentMs: .max, seq: .min, expireAtMs: .min)],
        [claim("u", .revoke, "r", revoke: Message.Revoke(targetMsgID: "m", badge: .decrease), clears: "e")],
        [claim("u", .revoke, "r", revoke: Message.Revoke(targetMsgID: "", badge: .count))],
        [claim(clears: "")],
        [
            claim(String(repeating: "u", count: 128), .message, String(repeating: "m", count: 64)),
            claim("v", note: [UInt8](repeating: 7, count: 70_000)),
        ],
    ]

    @Test(arguments: rows.indices) func `owed claims are read as they were written`(row: Int) throws {
        let written = Self.marks(Self.rows[row], conversation: "c\"", part: row == 0 ? 250 : nil)
        let claims = written.claims.map { claim in
            let subject = claim.request.subject
            return Self.claim(
                claim.request.uid, subject.kind, subject.id, conversation: "c\"", sentMs: subject.sentMs,
                seq: subject.seq, revoke: subject.revoke, expireAtMs: subject.expireAtMs,
                counted: claim.request.counted, clears: subject.clearsOnRead ? claim.eventID : nil, note: claim.note)
        }
        let read = try #require(Self.read(written.bytes))
        #expect(Self.words(read) == Self.words(Self.marks(claims, conversation: "c\"", part: written.part)))
        #expect(read.bytes == written.bytes)
    }

    @Test func `any owed claims are read as they were written`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        func text(_ bytes: Int) -> String {
            let scalars = (0..<Int.random(in: 0...bytes, using: &random)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0...(Bool.random(using: &random) ? 0x7F : 0x10FFFF), using: &random))
            }
            var text = ""
            for scalar in scalars where text.utf8.count + 4 <= bytes { text.unicodeScalars.append(scalar) }
            return text
        }
        func number() -> Int64 {
            Int64.random(in: .min ... .max, using: &random) >> Int64.random(in: 0...63, using: &random)
        }
        func some<Value>(_ value: Value) -> Value? { Bool.random(using: &random) ? value : nil }
        for _ in 0..<300 {
            let conversation = text(InputLimit.name)
            let claims = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                let kinds: [PairKind] = [.message, .revoke, .liveActivity]
                let badges: [Message.Revoke.Badge] = [.decrease, .keep, .count]
                let revoke = Message.Revoke(
                    targetMsgID: text(InputLimit.id), badge: badges.randomElement(using: &random) ?? .keep)
                return Self.claim(
                    text(InputLimit.user), kinds.randomElement(using: &random) ?? .message, text(InputLimit.id),
                    conversation: conversation, sentMs: number(), seq: some(number()), revoke: some(revoke),
                    expireAtMs: number(), counted: .random(using: &random), clears: some(text(InputLimit.id)),
                    note: (0..<Int.random(in: 0...40, using: &random)).map { _ in
                        .random(in: 0 ... .max, using: &random)
                    })
            }
            let written = Self.marks(
                claims, conversation: conversation, part: some(UInt8.random(in: 0 ... .max, using: &random)))
            let read = try #require(Self.read(written.bytes))
            #expect(Self.words(read) == Self.words(written))
        }
    }

    @Test func `members and parts of a later version are kept when the record is written again`() throws {
        var written = Self.marks([Self.claim(), Self.claim("v", note: [1])])
        written.later = [JSONTree.Member("id", .array([.number("1"), .string("x")]))]
        written.claims[1].later = [UInt8(ascii: "Z"), 2, 1, 2, UInt8(ascii: "j"), 0]
        let read = try #require(Self.read(written.bytes))
        #expect(read.bytes == written.bytes && read.later == written.later)
        #expect(read.claims[1].later == written.claims[1].later)
    }

    @Test func `damaged owed claims are refused`() {
        func entry(_ change: (inout OwedClaim) -> Void) -> [UInt8] {
            var claim = Self.claim()
            change(&claim)
            return Self.marks([claim]).bytes
        }
        func long(_ count: Int) -> String { String(repeating: "a", count: count) }
        func later(_ letter: String, _ content: [UInt8]) -> [UInt8] {
            entry { $0.later = Array(letter.utf8) + [UInt8(content.count)] + content }
        }
        let whole = Self.marks([Self.claim()]).bytes
        let damaged: [(String, [UInt8])] = [
            ("no recipient", Self.marks([]).bytes), ("cut", Array(whole.dropLast())), ("longer", whole + [9]),
            ("an empty recipient", whole + [0]), ("a long user", Self.marks([Self.claim(long(129))]).bytes),
            ("a long message", Self.marks([Self.claim("u", .message, long(65))]).bytes),
            ("a long conversation", Self.marks([Self.claim()], conversation: long(257)).bytes),
            ("a long app", OwedMarks(app: long(65), conversation: "c", part: nil, claims: [Self.claim()]).bytes),
            ("a user that is no text", later("u", [0xC3])), ("an unknown kind", later("k", [UInt8(ascii: "z")])),
            ("an unfinished time", later("t", [0x80])), ("a target without a badge", later("o", [65])),
            ("a badge without a target", later("b", Array("keep".utf8))), ("a part that is cut", later("Z", [])),
        ]
        for (name, bytes) in damaged {
            // The last one keeps its letter alone.
            let bytes = name == "a part that is cut" ? Array(bytes.dropLast()) : Array(bytes)
            #expect(Self.read(bytes) == nil, "\(name)")
        }
        #expect(Self.read(whole) != nil && Self.read(later("Z", [])) != nil)
    }

    @Test func `damaged bytes never stop the reader`() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let whole = Self.marks(Self.rows.flatMap { $0 }.filter { $0.note.count < 99 }).bytes
        for _ in 0..<2_000 {
            var bytes = Array(whole.prefix(.random(in: 0...whole.count, using: &random)))
            for _ in 0..<3 {
                guard let place = bytes.indices.randomElement(using: &random) else { break }
                bytes[place] = .random(in: 0 ... .max, using: &random)
            }
            if let read = Self.read(bytes) { #expect(Self.read(read.bytes)?.bytes == read.bytes) }
        }
    }
}
