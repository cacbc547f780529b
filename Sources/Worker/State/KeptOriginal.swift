// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// The note in Redis about a message, for its revoke.
///
/// The text is the collapse id alone, or of a scheduled message a line feed, `r` if it was revoked before its time, the time, and, if
/// it has a collapse id, another line feed and that. No collapse id has a line feed.
struct KeptOriginal: Equatable {
    /// The collapse id that its sender chose; nil: none.
    var collapseID: String?
    /// The time at which a scheduled message is decided, Unix ms; nil: it is not scheduled.
    var sendAtMs: Int64?
    /// A group's scheduled message was revoked before its time: who joins the group later gets it neither.
    var isRevoked: Bool

    init(collapseID: String?, sendAtMs: Int64? = nil, isRevoked: Bool = false) {
        self.collapseID = collapseID
        self.sendAtMs = sendAtMs
        self.isRevoked = isRevoked
    }

    /// Whether the message still waits for its time.
    func waits(nowMs: Int64) -> Bool { (sendAtMs ?? 0) > nowMs }

    private static let feed = UInt8(ascii: "\n")

    /// - Returns: nil if nothing is stored, and for any other text.
    init?(_ reply: borrowing RedisReply) {
        if reply.isNull { return nil }
        let bytes = reply.bytes
        guard bytes.first == Self.feed else {
            guard let id = CompactText.text(bytes, atMost: InputLimit.id) else { return nil }
            self.init(collapseID: id)
            return
        }
        var rest = bytes.dropFirst()
        let isRevoked = rest.first == UInt8(ascii: "r")
        if isRevoked { rest = rest.dropFirst() }
        let end = rest.firstIndex(of: Self.feed)
        let time = UnsafeRawBufferPointer(rebasing: rest[..<(end ?? rest.endIndex)])
        guard let sendAtMs = Decimal.unsigned(time).flatMap({ Int64(exactly: $0) }) else { return nil }
        let id = end.flatMap { feed in
            CompactText.text(UnsafeRawBufferPointer(rebasing: rest[rest.index(after: feed)...]), atMost: InputLimit.id)
        }
        self.init(collapseID: id, sendAtMs: sendAtMs, isRevoked: isRevoked)
    }

    fileprivate func write(to command: inout RedisCommand) {
        if let sendAtMs {
            command.part(byte: Self.feed)
            if isRevoked { command.part(byte: UInt8(ascii: "r")) }
            command.part(StateKeys.time(sendAtMs))
            if collapseID != nil { command.part(byte: Self.feed) }
        }
        if let collapseID { command.part(collapseID) }
    }
}

extension RedisCommand {
    /// As a part of an argument.
    mutating func part(_ original: KeptOriginal) { original.write(to: &self) }
}
