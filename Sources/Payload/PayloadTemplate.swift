// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
public import PushCore

/// A payload encoded once per (event, variant), with places for badge, pid and receiver id.
///
/// Rendering for one device copies a few byte ranges. The exact size with all values decides: a payload within Apple's
/// limit remains whole; otherwise the body is cut for that device.
public struct PayloadTemplate: Sendable {
    private let bytes: [UInt8]
    /// Where `"badge":n` goes; nil: the server has no number for this push (a silent one, or `badge: none` or `sender`).
    private let badgeAt: Int?
    private let pidAt: Int
    /// Position of the receiver's id (profile `rc`).
    private let receiverAt: Int?
    private let limit: Int
    /// Position of the body's characters, before all insertion points.
    private let body: Range<Int>
    /// Nil if nothing needs cutting whatever values are inserted, or without a body.
    private let cut: BodyCut?

    /// Apple: 4096 bytes, 5120 for VoIP.
    public static func limit(voip: Bool) -> Int { voip ? 5120 : 4096 }

    /// Enough for most.
    private static let usualBytes = 640
    /// `,"badge":` with the longest number.
    private static let badgeBytesMax = 28
    /// A uid has at most 128 bytes, and each may need a six-byte escape.
    private static let receiverBytesMax = 768

    /// Encodes the payload. Returns nil if it is too large for every device even with the body cut
    /// (`payload_too_large`).
    ///
    public init?(
        _ message: borrowing Message, variant: PayloadVariant, rules: PayloadRules, templates: Templates
    ) {
        let limit = Self.limit(voip: message.push.voip)
        var writer = JSONWriter(reservingCapacity: Self.usualBytes)
        let places = Self.write(message, variant, rules, templates, to: &writer)
        let least = writer.count + PushID.textCount
        var most = least
        if places.badge != nil { most += Self.badgeBytesMax }
        if places.receiver != nil { most += Self.receiverBytesMax }
        var body = places.body?.range ?? 0..<0
        var cut: BodyCut?
        var shift = 0
        if most > limit, let body = places.body { cut = BodyCut(body.name + body.text, limit: limit) }
        if least > limit {
            // Too large for every device: removes the part of the body that no device can get.
            guard let kept = cut?.length(in: body.count - (least - limit)) else { return nil }
            writer.replace(body.lowerBound + kept..<body.upperBound, with: Array(TextCut.ellipsis.utf8))
            shift = body.count - kept - TextCut.ellipsisBytes
            body = body.lowerBound..<body.upperBound - shift
        }
        badgeAt = places.badge.map { $0 - shift }
        pidAt = places.pid - shift
        receiverAt = places.receiver.map { $0 - shift }
        bytes = writer.bytes
        self.limit = limit
        self.body = body
        self.cut = cut
    }

    /// The payload of a message to one device only, written at once; nil if it exceeds the limit even with its body cut.
    ///
    /// - Parameters:
    ///   - badge: already capped (`BadgeRule`); nil leaves the icon unchanged.
    ///   - receiver: the recipient's uid, used by profile `rc`.
    public static func payload(
        _ message: borrowing Message, variant: PayloadVariant, rules: PayloadRules, templates: Templates,
        badge: Int64?, pid: PushID, receiver: String
    ) -> [UInt8]? {
        var writer = JSONWriter(reservingCapacity: usualBytes)
        _ = write(
            message, variant, rules, templates, for: Device(badge: badge, pid: pid, receiver: receiver), to: &writer)
        if writer.count <= limit(voip: message.push.voip) { return writer.bytes }
        return PayloadTemplate(message, variant: variant, rules: rules, templates: templates)?
            .render(badge: badge, pid: pid, receiver: receiver)
    }

    /// What differs between the devices of one variant.
    private struct Device {
        let badge: Int64?
        let pid: PushID
        let receiver: String
    }

    /// Where it goes in the bytes, and where the body is.
    private struct Places {
        /// Nil: the server has no number for this push.
        let badge: Int?
        let pid: Int
        let receiver: Int?
        let body: APSObject.Body?
    }

    /// - Parameter device: nil: its places are left empty.
    private static func write(
        _ message: borrowing Message, _ variant: borrowing PayloadVariant, _ rules: borrowing PayloadRules,
        _ templates: Templates, for device: Device? = nil, to writer: inout JSONWriter
    ) -> Places {
        writer.beginObject()
        writer.key("aps")
        writer.beginObject()
        var body: APSObject.Body?
        if message.push.silent {
            // Apple: a background push has `content-available` and shows nothing.
            writer.member("content-available", 1)
        } else {
            let lifted = LiftedKeys(message, rules.profile)
            body = APSObject(
                message, lifted,
                text: AlertText(
                    message, variant: variant, title: lifted.title, rules: rules, templates: templates),
                variant: variant, rules: rules
            ).write(to: &writer)
        }
        let badgePlace = rules.badge == .server && !message.push.silent ? writer.count : nil
        if badgePlace != nil, let badge = device?.badge { writer.member("badge", max(0, badge)) }
        writer.endObject()
        writer.key("pid")
        let pidPlace = writer.count + 1
        writer.string(plain: device == nil ? 0 : PushID.textCount) { device?.pid.write(to: $0) }
        let receiverPlace = ProfileKeys(message, variant, rules)
            .write(message, receiver: device?.receiver ?? "", to: &writer)
        if rules.communication { CommunicationKeys.write(message, variant, to: &writer) }
        writer.endObject()
        return Places(badge: badgePlace, pid: pidPlace, receiver: receiverPlace, body: body)
    }

    /// The payload for one device; nil if it exceeds the limit even with its body cut.
    ///
    /// - Parameters:
    ///   - badge: already capped (`BadgeRule`); nil leaves the icon unchanged.
    ///   - receiver: the recipient's uid, used by profile `rc`.
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

    /// - Parameter gap: the end of the body that `…` replaces; nil if nothing is cut.
    private func fill(
        count: Int, gap: Range<Int>?, badge: UInt64?, pid: PushID, receiver: [UInt8]
    ) -> [UInt8] {
        // Assembled in temporary memory and copied. An array that is built here needs a type lookup, which takes longer
        // than a copy.
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
