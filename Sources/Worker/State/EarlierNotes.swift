// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import PushCore
import Redis

/// The notes of an unfinished mark: `<letter><length>:<text>`, one after the other.
///
/// A letter in upper case closes the device that its text begins with, `<length>:<device>`: it needs nothing more. With an empty name the
/// recipient as a whole is closed. Of the letters that later versions write, those in lower case are information, which is skipped.
public final class EarlierNotes: Sendable {
    let accepted: [EarlierPush]
    let addressed: [String]
    /// Devices that need nothing more and have their records.
    let closed: [String]
    /// How they ended, as far as this version knows it.
    let ends: [Journal.Entry]
    let withoutDevice: Reason?
    let wait: EarlierWait?

    /// Devices that get nothing more from this event.
    var doneDevices: [String] { accepted.map(\.device) + closed }

    enum Note: UInt8 {
        /// A device of a recipient in `carillon.parked` has ended since the record there was written; behind it, the journal's entry.
        case ended = 0x45  // E
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

    init(
        accepted: [EarlierPush] = [], addressed: [String] = [], closed: [String] = [], ends: [Journal.Entry] = [],
        withoutDevice: Reason? = nil, wait: EarlierWait? = nil
    ) {
        self.accepted = accepted
        self.addressed = addressed
        self.closed = closed
        self.ends = ends
        self.withoutDevice = withoutDevice
        self.wait = wait
    }

    /// - Returns: nil without notes. Bytes that cannot be read end the list.
    convenience init?(_ bytes: UnsafeRawBufferPointer) {
        var accepted: [EarlierPush] = []
        var (addressed, closed) = ([String](), [String]())
        var ends: [Journal.Entry] = []
        var withoutDevice: Reason?
        var wait: EarlierWait?
        var text = CompactText(bytes)
        while let letter = text.byte(), let bytes = text.content() {
            if (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(letter) {
                var text = CompactText(bytes)
                guard let device = text.string(atMost: InputLimit.user) else { continue }
                // A later version may record a recipient without a device for a reason that this one does not know.
                if device.isEmpty { withoutDevice = withoutDevice ?? .msgPushOff } else { closed.append(device) }
                var rest = PartReader(rest: text.rest[...])
                if letter == Note.ended.rawValue, let end = Journal.Entry(&rest) { ends.append(end) }
                continue
            }
            guard let note = Note(rawValue: letter), let content = CompactText.text(bytes, atMost: InputLimit.user)
            else { continue }
            switch note {
            case .ended: break
            case .accepted: accepted.append(EarlierPush(content))
            case .addressed: addressed.append(content)
            case .push: if let last = accepted.indices.last { accepted[last].take(content) }
            case .withoutDevice: withoutDevice = Reason(rawValue: content)
            case .parked: wait = EarlierWait(content)
            }
        }
        let isEmpty = accepted.isEmpty && addressed.isEmpty && closed.isEmpty
        if isEmpty, withoutDevice == nil, wait == nil { return nil }
        self.init(
            accepted: accepted, addressed: addressed, closed: closed, ends: ends, withoutDevice: withoutDevice,
            wait: wait)
    }
}

extension EarlierNotes: Equatable {
    public static func == (one: EarlierNotes, other: EarlierNotes) -> Bool {
        one.accepted == other.accepted && one.addressed == other.addressed && one.closed == other.closed
            && one.ends == other.ends && one.withoutDevice == other.withoutDevice && one.wait == other.wait
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

    /// The content of a note that `take` reads; nil without an id.
    var note: String? {
        pushID.map { $0.description + (badge.map(String.init) ?? "") + (isForced ? "f" : "") }
    }

    fileprivate mutating func take(_ note: String) {
        guard let id = PushID(ascii: note.utf8.prefix(PushID.textCount)) else { return }
        pushID = id
        let badge = note.utf8.dropFirst(PushID.textCount)
        isForced = badge.last == UInt8(ascii: "f")
        self.badge = Int64(Substring(isForced ? badge.dropLast() : badge))
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

    /// Adds the note `ended` to the present argument.
    mutating func part(_ end: Journal.Entry, of device: String) {
        var entry = Parts()
        end.write(to: &entry)
        let name = "\(device.utf8.count):\(device)"
        part(byte: EarlierNotes.Note.ended.rawValue)
        part(Int64(name.utf8.count + entry.bytes.count))
        part(byte: UInt8(ascii: ":"))
        part(name)
        part(entry.bytes)
    }
}
