import Digits
import JSON
public import PushCore

/// A payload encoded once per (event, variant), with places for badge, pid and receiver id.
///
/// Rendering for one device is a few copies of bytes. Whatever is put into the places, the result stays within Apple's
/// limit.
public struct PayloadTemplate: Sendable {
    private let bytes: [UInt8]
    /// Where `"badge":n` goes; nil: this push carries no badge (a silent one).
    private let badgeAt: Int?
    private let pidAt: Int
    /// Where the receiver's id goes (profile `rc`).
    private let receiverAt: Int?
    private let limit: Int

    /// Apple: 4096 bytes, 5120 for VoIP.
    public static func limit(voip: Bool) -> Int { voip ? 5120 : 4096 }

    /// `,"badge":` with the longest number.
    private static let badgeReserve = 28
    /// An id of ordinary length; a longer one is refused by `render` where it does not fit.
    private static let receiverReserve = 128

    /// Encodes; a body too long is cut on a grapheme border. Nil: too large even so (`payload_too_large`).
    public init?(
        _ message: borrowing Message, variant: PayloadVariant, profile: PayloadProfile, templates: Templates
    ) {
        limit = Self.limit(voip: message.push.voip)
        var writer = JSONWriter(reservingCapacity: 640)
        writer.beginObject()
        writer.key("aps")
        writer.beginObject()
        var body: APSObject.Body?
        if message.push.silent {
            // Apple: a background push has `content-available` and nothing that is shown.
            writer.member("content-available", 1)
        } else {
            let text = AlertText(message, variant: variant, templates: templates)
            body = APSObject(
                message, text: text, isReplaced: variant.isHidden || variant.mergedCount > 1
            ).write(to: &writer)
        }
        let apsEnd = writer.count
        writer.endObject()
        writer.key("pid")
        let pidPlace = writer.placedString("").lowerBound
        let receiverPlace = ProfileKeys(profile).write(message, to: &writer)
        writer.endObject()

        let reserved =
            PushID.textCount + (message.push.silent ? 0 : Self.badgeReserve)
            + (receiverPlace == nil ? 0 : Self.receiverReserve)
        let excess = writer.count + reserved - limit
        var shift = 0
        if excess > 0 {
            guard let body,
                let cut = TextCut.escapedBytes(
                    body.name + body.text, limit: body.range.count - excess)
            else {
                return nil
            }
            var short = JSONWriter()
            let range = short.placedString(cut)
            shift = body.range.count - range.count
            writer.replace(body.range, with: short.bytes(in: range))
        }
        badgeAt = message.push.silent ? nil : apsEnd - shift
        pidAt = pidPlace - shift
        receiverAt = receiverPlace.map { $0 - shift }
        bytes = writer.bytes
    }

    /// The payload for one device; nil where it would pass the limit.
    ///
    /// - Parameters:
    ///   - badge: already capped (`BadgeRule`); nil: the icon stays as it is.
    ///   - receiver: the recipient's uid, which profile `rc` names.
    public func render(badge: Int64?, pid: PushID, receiver: String) -> [UInt8]? {
        let badge = badgeAt == nil ? nil : badge.map { UInt64(max(0, $0)) }
        let receiver = receiverAt == nil ? [] : Self.escaped(receiver)
        let badgeBytes = badge.map { Self.badgeKey.utf8CodeUnitCount + Decimal.count($0) } ?? 0
        let count = bytes.count + badgeBytes + PushID.textCount + receiver.count
        guard count <= limit else { return nil }
        // Put together elsewhere and copied: an array of our own making looks its type up, which takes longer than a copy.
        return withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { out in
            bytes.withUnsafeBytes { all in
                var filled = 0
                var done = 0
                func put(_ part: UnsafeRawBufferPointer) {
                    UnsafeMutableRawBufferPointer(rebasing: out[filled...]).copyMemory(from: part)
                    filled += part.count
                }
                func copy(to end: Int) {
                    put(UnsafeRawBufferPointer(rebasing: all[done..<end]))
                    done = end
                }
                if let badgeAt, let badge {
                    copy(to: badgeAt)
                    put(
                        UnsafeRawBufferPointer(
                            start: Self.badgeKey.utf8Start, count: Self.badgeKey.utf8CodeUnitCount))
                    if let start = out.baseAddress { filled += Decimal.write(badge, to: start + filled) }
                }
                copy(to: pidAt)
                if let start = out.baseAddress { pid.write(to: start + filled) }
                filled += PushID.textCount
                if let receiverAt {
                    copy(to: receiverAt)
                    receiver.withUnsafeBytes { put($0) }
                }
                copy(to: all.count)
            }
            return [UInt8](out)
        }
    }

    private static let badgeKey: StaticString = ",\"badge\":"

    private static func escaped(_ text: String) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: receiverReserve)
        let range = writer.placedString(text)
        return writer.bytes(in: range)
    }

    /// The payload of a push that only sets the icon's number (`clear_on_read`).
    public static func badgeAlone(_ number: Int64) -> [UInt8] {
        Array(#"{"aps":{"badge":\#(number)}}"#.utf8)
    }
}
