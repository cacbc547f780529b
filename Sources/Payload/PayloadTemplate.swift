import Digits
import JSON
public import PushCore

/// A payload encoded once per (event, variant), with places for badge, pid and receiver id.
///
/// Rendering for one device is a few copies of bytes. The exact size with what is put into the places decides: what is
/// within Apple's limit is left whole, and of what is not, the body is cut for that device.
public struct PayloadTemplate: Sendable {
    private let bytes: [UInt8]
    /// Where `"badge":n` goes; nil: the server has no number for this push (a silent one, or `badge: none` or `sender`).
    private let badgeAt: Int?
    private let pidAt: Int
    /// Where the receiver's id goes (profile `rc`).
    private let receiverAt: Int?
    private let limit: Int
    /// Where the body's characters lie; they come before all places.
    private let body: Range<Int>
    /// Nil where nothing needs to be cut whatever is put into the places, or there is no body.
    private let cut: BodyCut?

    /// Apple: 4096 bytes, 5120 for VoIP.
    public static func limit(voip: Bool) -> Int { voip ? 5120 : 4096 }

    /// `,"badge":` with the longest number.
    private static let badgeBytesMax = 28
    /// A uid has at most 128 bytes, of which each may be escaped with six.
    private static let receiverBytesMax = 768

    /// Encodes. Nil: too large for every device, however much of the body is cut (`payload_too_large`).
    ///
    public init?(
        _ message: borrowing Message, variant: PayloadVariant, rules: PayloadRules, templates: Templates
    ) {
        let limit = Self.limit(voip: message.push.voip)
        var writer = JSONWriter(reservingCapacity: 640)
        writer.beginObject()
        writer.key("aps")
        writer.beginObject()
        var written: APSObject.Body?
        if message.push.silent {
            // Apple: a background push has `content-available` and nothing that is shown.
            writer.member("content-available", 1)
        } else {
            let lifted = LiftedKeys(message, rules.profile)
            let text = AlertText(
                message, variant: variant, title: lifted.title, prefix: rules.prefix, templates: templates)
            written = APSObject(message, lifted, text: text, variant: variant, rules: rules).write(to: &writer)
        }
        let hasBadge = rules.badge == .server && !message.push.silent
        let apsEnd = writer.count
        writer.endObject()
        writer.key("pid")
        let pidPlace = writer.placedString("").lowerBound
        let receiverPlace = ProfileKeys(message, variant, rules).write(message, to: &writer)
        if rules.communication { CommunicationKeys.write(message, variant, to: &writer) }
        writer.endObject()

        let least = writer.count + PushID.textCount
        let most =
            least + (hasBadge ? Self.badgeBytesMax : 0) + (receiverPlace == nil ? 0 : Self.receiverBytesMax)
        var body = written?.range ?? 0..<0
        var cut: BodyCut?
        var shift = 0
        if most > limit, let written { cut = BodyCut(written.name + written.text, limit: limit) }
        if least > limit {
            // Too large for every device: the part of the body that none can get goes now.
            guard let kept = cut?.length(in: body.count - (least - limit)) else { return nil }
            writer.replace(body.lowerBound + kept..<body.upperBound, with: Array(TextCut.ellipsis.utf8))
            shift = body.count - kept - TextCut.ellipsisBytes
            body = body.lowerBound..<body.upperBound - shift
        }
        badgeAt = hasBadge ? apsEnd - shift : nil
        pidAt = pidPlace - shift
        receiverAt = receiverPlace.map { $0 - shift }
        bytes = writer.bytes
        self.limit = limit
        self.body = body
        self.cut = cut
    }

    /// The payload for one device; nil where it would pass the limit even with its body cut.
    ///
    /// - Parameters:
    ///   - badge: already capped (`BadgeRule`); nil: the icon stays as it is.
    ///   - receiver: the recipient's uid, which profile `rc` names.
    public func render(badge: Int64?, pid: PushID, receiver: String) -> [UInt8]? {
        let badge = badgeAt == nil ? nil : badge.map { UInt64(max(0, $0)) }
        let receiver = receiverAt == nil ? [] : Self.escaped(receiver)
        let badgeBytes = badge.map { Self.badgeKey.utf8CodeUnitCount + Decimal.count($0) } ?? 0
        let count = bytes.count + badgeBytes + PushID.textCount + receiver.count
        if count <= limit {
            return fill(count: count, gap: nil, badge: badge, pid: pid, receiver: receiver)
        }
        guard let kept = cut?.length(in: body.count - (count - limit)) else { return nil }
        let gap = body.lowerBound + kept..<body.upperBound
        return fill(
            count: count - gap.count + TextCut.ellipsisBytes, gap: gap, badge: badge, pid: pid, receiver: receiver)
    }

    /// - Parameter gap: the end of the body that `…` takes the place of; nil: nothing is cut.
    private func fill(
        count: Int, gap: Range<Int>?, badge: UInt64?, pid: PushID, receiver: [UInt8]
    ) -> [UInt8] {
        // Put together elsewhere and copied: an array of our own making looks its type up, which takes longer than a copy.
        withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { out in
            bytes.withUnsafeBytes { all in
                var filled = 0
                var done = 0
                func put(_ part: UnsafeRawBufferPointer) {
                    UnsafeMutableRawBufferPointer(rebasing: out[filled...]).copyMemory(from: part)
                    filled += part.count
                }
                func put(_ text: StaticString) {
                    put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
                }
                func copy(to end: Int) {
                    put(UnsafeRawBufferPointer(rebasing: all[done..<end]))
                    done = end
                }
                if let gap {
                    copy(to: gap.lowerBound)
                    put("…")
                    done = gap.upperBound
                }
                if let badgeAt, let badge {
                    copy(to: badgeAt)
                    put(Self.badgeKey)
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
        var writer = JSONWriter(reservingCapacity: 128)
        let range = writer.placedString(text)
        return writer.bytes(in: range)
    }

    /// The payload of a push that only sets the icon's number (`clear_on_read`).
    public static func badgeAlone(_ number: Int64) -> [UInt8] {
        Array(#"{"aps":{"badge":\#(number)}}"#.utf8)
    }
}
