// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

/// The stored form of an entry: in a record of `carillon.parked` (`OpenRecipients`), and in the mark of a recipient that waits there
/// (`EarlierNotes.Note.ended`).
extension Journal.Entry {
    private enum Fields {
        static let device: UInt8 = 1
        static let pushID: UInt8 = 2
        static let badge: UInt8 = 4
    }

    func write(to parts: inout Parts) {
        parts.bytes.append(verdict.letter)
        parts.bytes.append(traits.rawValue)
        parts.bytes.append(
            (device == nil ? 0 : Fields.device) | (pushID == nil ? 0 : Fields.pushID)
                | (badge == nil ? 0 : Fields.badge))
        parts.bytes.append(countedReason)
        parts.bytes.append(credential)
        parts.signed(atMs)
        parts.signed(Int64(status))
        parts.signed(Int64(attempts))
        parts.signed(latencyMs)
        parts.text(reason)
        if let device { parts.text(device) }
        if let pushID {
            parts.number(pushID.high)
            parts.number(pushID.low)
        }
        if let badge { parts.signed(badge) }
    }

    /// - Returns: nil for content that this version does not write.
    init?(_ part: inout PartReader) {
        guard let verdict = part.byte().flatMap(Verdict.init(letter:)), let traits = part.byte(),
            let fields = part.byte(), fields < 8, let countedReason = part.byte(), let credential = part.byte(),
            let atMs = part.signed(), let status = part.signed(), let attempts = part.signed(),
            let latencyMs = part.signed(), let reason = part.text()
        else { return nil }
        var device: String?
        if fields & Fields.device != 0 {
            guard let name = part.text() else { return nil }
            device = name
        }
        var pushID: PushID?
        if fields & Fields.pushID != 0 {
            guard let high = part.word(), let low = part.word() else { return nil }
            pushID = PushID(high: high, low: low)
        }
        var badge: Int64?
        if fields & Fields.badge != 0 {
            guard let number = part.signed() else { return nil }
            badge = number
        }
        if !part.rest.isEmpty { return nil }
        self.init(
            device: device, verdict: verdict, reason: reason, atMs: atMs, pushID: pushID, badge: badge,
            status: Int32(truncatingIfNeeded: status), attempts: Int32(truncatingIfNeeded: attempts),
            latencyMs: latencyMs, countedReason: countedReason, credential: credential,
            traits: Traits(rawValue: traits))
    }
}
