// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import PushCore

/// A bound token as stored in the user's hash.
///
/// Field: `t` + kind + device with its length + activity id, or for a start token its attributes type. Record, version
/// 1: `1 <version> <bound_ms> <token> <p|s> ` followed by topic, credential, content key, language, zone, and `1:0` if the
/// device shows no alerts. Scripts read its first four words, and the part after the topic. A newer worker may add more at the
/// end.
enum TokenText {
    static func letter(_ kind: TokenRecord.Kind) -> String {
        switch kind {
        case .alert: "a"
        case .voip: "v"
        case .activity: "c"
        case .start: "s"
        }
    }

    /// The part of a field that names the device.
    static func deviceWord(_ device: String) -> String {
        var word = ""
        CompactText.append(device, to: &word)
        return word
    }

    static func field(device: String, _ record: TokenRecord) -> String {
        var field = "t" + letter(record.type) + deviceWord(device)
        switch record.type {
        case .alert, .voip: break
        case .activity: field += record.activityID ?? ""
        case .start: field += record.attributesType ?? ""
        }
        return field
    }

    /// The record up to the topic; `words` follow.
    static func head(_ record: TokenRecord, version: Int64) -> String {
        let environment = record.environment == .production ? "p" : "s"
        var text = "1 \(StateKeys.version(version)) \(StateKeys.time(record.boundMs)) \(record.hex) \(environment) "
        CompactText.append(record.topic, to: &text)
        return text
    }

    /// The whole record as stored.
    static func record(_ token: BoundToken) -> String {
        var text = head(token.record, version: token.version)
        for word in [token.record.credential, token.record.contentKey, token.record.language, token.record.zone] {
            CompactText.append(word, to: &text)
        }
        return text + tail(token.record)
    }

    /// What follows the zone; empty for a device that shows alerts, so that its record is as an older worker writes it.
    static func tail(_ record: TokenRecord) -> String { record.showsAlerts ? "" : "1:0" }

    /// Credential, content key, language and zone of a bind; `=` keeps the token's value.
    static func words(_ record: TokenRecord) -> [String] {
        [record.credential, record.contentKey, record.language, record.zone].map { word in
            guard let word else { return "=" }
            var text = ""
            CompactText.append(word.isEmpty ? nil : word, to: &text)
            return text
        }
    }

    /// - Returns: nil for an unknown version, and for a token that no bind would accept: nothing is pushed to it. A
    ///   word over its limit counts as absent.
    static func token(field: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer) -> BoundToken? {
        var name = CompactText(field)
        guard name.skip(UInt8(ascii: "t")), let letter = name.byte(), let kind = kind(letter),
            let device = name.string(atMost: InputLimit.user)
        else { return nil }
        var suffix: String?
        if !name.isEmpty {
            guard let text = name.text(until: 0) else { return nil }
            suffix = text
        }
        var text = CompactText(record)
        guard text.skip("1 "), let version = StateKeys.version(of: text.word()), let boundMs = text.number()
        else { return nil }
        guard let hex = text.text(atMost: DeviceToken.digitsMax), DeviceToken.isKept(hex),
            let environment = text.byte(), text.skip(UInt8(ascii: " ")), let topic = text.optional(),
            AppPolicy.isTopic(topic)
        else { return nil }
        let most = InputLimit.word
        let token = TokenRecord(
            hex: hex, environment: environment == UInt8(ascii: "s") ? .sandbox : .production, topic: topic, type: kind,
            credential: text.optional(atMost: most), contentKey: text.optional(atMost: most),
            language: text.optional(atMost: most), zone: text.optional(atMost: most),
            activityID: kind == .activity ? suffix : nil, attributesType: kind == .start ? suffix : nil,
            boundMs: boundMs, showsAlerts: !text.skip("1:0"))
        return BoundToken(device: device, record: token, version: version)
    }

    private static func kind(_ letter: UInt8) -> TokenRecord.Kind? {
        switch letter {
        case UInt8(ascii: "a"): .alert
        case UInt8(ascii: "v"): .voip
        case UInt8(ascii: "c"): .activity
        case UInt8(ascii: "s"): .start
        default: nil
        }
    }
}
