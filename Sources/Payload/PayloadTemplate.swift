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
            PushIdentity.textCount + (message.push.silent ? 0 : Self.badgeReserve)
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
    public func render(badge: Int64?, pid: PushIdentity, receiver: String) -> [UInt8]? {
        let badge = badgeAt == nil ? nil : badge.map { Self.badgeMember($0) }
        let receiver = receiverAt == nil ? [] : Self.escaped(receiver)
        let count = bytes.count + (badge?.utf8.count ?? 0) + PushIdentity.textCount + receiver.count
        guard count <= limit else { return nil }
        return [UInt8](unsafeUninitializedCapacity: count) { out, filled in
            let out = UnsafeMutableRawBufferPointer(out)
            bytes.withUnsafeBytes { all in
                var done = 0
                func copy(to end: Int) {
                    UnsafeMutableRawBufferPointer(rebasing: out[filled...])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: all[done..<end]))
                    filled += end - done
                    done = end
                }
                func put(_ part: some Collection<UInt8>) {
                    UnsafeMutableRawBufferPointer(rebasing: out[filled...]).copyBytes(from: part)
                    filled += part.count
                }
                if let badgeAt, let badge {
                    copy(to: badgeAt)
                    put(badge.utf8)
                }
                copy(to: pidAt)
                pid.write(to: UnsafeMutableRawBufferPointer(rebasing: out[filled...]))
                filled += PushIdentity.textCount
                if let receiverAt {
                    copy(to: receiverAt)
                    put(receiver)
                }
                copy(to: all.count)
            }
        }
    }

    private static func badgeMember(_ number: Int64) -> String { ",\"badge\":" + String(number) }

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
