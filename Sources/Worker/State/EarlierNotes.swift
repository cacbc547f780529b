// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import PushCore
import Redis

/// The notes of an unfinished mark: `<letter><length>:<text>`, one after the other. The first that cannot be read ends the list.
struct EarlierNotes: Sendable, Equatable {
    var accepted: [EarlierPush] = []
    var addressed: [String] = []
    var withoutDevice: Reason?
    var wait: EarlierWait?

    enum Note: UInt8 {
        /// APNs accepted the push of this device.
        case accepted = 0x61  // a
        /// This device was delivered to by connection, or its end is recorded.
        case addressed = 0x64  // d
        /// Follows a push: its id, its badge, and `f` if it was forced.
        case push = 0x69  // i
        /// The recipient is recorded without a device, for this reason.
        case withoutDevice = 0x6e  // n
        /// The recipient waits in `carillon.parked`, and no note of the user says so (`EarlierWait`).
        case parked = 0x70  // p
    }

    init() {}

    init(_ bytes: UnsafeRawBufferPointer) {
        var text = CompactText(bytes)
        while let note = text.byte().flatMap(Note.init(rawValue:)),
            let content = text.string(atMost: InputLimit.user)
        {
            switch note {
            case .accepted: accepted.append(EarlierPush(content))
            case .addressed: addressed.append(content)
            case .push: takePush(content)
            case .withoutDevice: withoutDevice = Reason(rawValue: content)
            case .parked: wait = EarlierWait(content)
            }
        }
    }

    private mutating func takePush(_ text: String) {
        guard let last = accepted.indices.last, let id = PushID(ascii: text.utf8.prefix(PushID.textCount)) else {
            return
        }
        accepted[last].pushID = id
        var badge = text.utf8.dropFirst(PushID.textCount)
        if badge.last == UInt8(ascii: "f") {
            accepted[last].isForced = true
            badge = badge.dropLast()
        }
        accepted[last].badge = Int64(Substring(badge))
    }
}

/// The wait of an earlier try in `carillon.parked`.
struct EarlierWait: Sendable, Equatable {
    /// Unix ms.
    var untilMs: Int64
    /// One that only the mark tells (`ParkCause.isNotedInMark`); nil: Redis took no mark when the recipient was parked.
    var cause: ParkCause?

    init(untilMs: Int64, cause: ParkCause? = nil) {
        self.untilMs = untilMs
        self.cause = cause
    }

    /// - Returns: nil for any text that is no `text`.
    init?(_ text: String) {
        let cause = Self.letters.first { $0.letter == text.utf8.last }?.cause
        guard let untilMs = Int64(cause == nil ? Substring(text) : Substring(text.utf8.dropLast())) else { return nil }
        self.init(untilMs: untilMs, cause: cause)
    }

    private static let letters: [(cause: ParkCause, letter: UInt8)] = [
        (.desktopFirst, UInt8(ascii: "d")), (.background, UInt8(ascii: "b")),
    ]

    /// The content of a note. Earlier versions read no wait in one with a letter that they do not know.
    var text: String {
        let letter = Self.letters.first { $0.cause == cause }?.letter
        return String(StateKeys.time(untilMs)) + (letter.map { String(Unicode.Scalar($0)) } ?? "")
    }
}

/// A push of an earlier try that APNs accepted.
public struct EarlierPush: Sendable, Equatable {
    var device: String
    /// Nil if a worker of an earlier version made the note.
    var pushID: PushID?
    /// The number in the push.
    var badge: Int64?
    var isForced = false

    init(_ device: String, _ pushID: PushID? = nil, badge: Int64? = nil, isForced: Bool = false) {
        self.device = device
        self.pushID = pushID
        self.badge = badge
        self.isForced = isForced
    }

    /// The content of a note that `EarlierNotes.takePush` reads; nil without an id.
    var note: String? {
        pushID.map { $0.description + (badge.map(String.init) ?? "") + (isForced ? "f" : "") }
    }
}

extension [EarlierPush] {
    func containsSame(_ device: String) -> Bool { contains { $0.device.isSame(as: device) } }
}

/// A recipient with one record without device.
struct WithoutDevice: Sendable, Equatable {
    var reason: Reason
    /// The type of the tokens that the event is pushed to.
    var tokens: TokenRecord.Kind

    /// For `ClaimScripts.claim`: the letter of the type, then the content of a note.
    var text: String { "\(TokenText.letter(tokens))\(reason.rawValue.utf8.count):\(reason.rawValue)" }
}

extension RedisCommand {
    /// Adds a note to the present argument.
    mutating func part(_ note: EarlierNotes.Note, _ text: String) {
        part(byte: note.rawValue)
        part(Int64(text.utf8.count))
        part(byte: UInt8(ascii: ":"))
        part(text)
    }
}
