// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import PushCore

/// The texts of a packed recipient in one piece of memory: the raw token, then each text behind its length.
struct PackedTexts {
    enum Part: Int, CaseIterable {
        case uid, device, topic, credential, contentKey, language, zone
    }

    /// The number of the token's bytes first. Before each text its length, plus one: 0 is nil.
    private let bytes: [UInt8]

    /// - Returns: nil for the token of a Live Activity, and for texts longer than the contract allows.
    init?(uid: String, device: String, _ token: BoundToken) {
        let record = token.record
        guard record.activityID == nil, record.attributesType == nil, DeviceToken.isKept(record.hex),
            let raw = Hex.bytes(record.hex.utf8), let size = UInt8(exactly: raw.count)
        else { return nil }
        let texts = [uid, device, record.topic, record.credential, record.contentKey, record.language, record.zone]
        var bytes: [UInt8] = []
        bytes.reserveCapacity(texts.reduce(1 + raw.count) { $0 + 1 + ($1?.utf8.count ?? 0) })
        bytes.append(size)
        bytes += raw
        for text in texts {
            guard let length = UInt8(exactly: text.map { $0.utf8.count + 1 } ?? 0) else { return nil }
            bytes.append(length)
            if let text { bytes += text.utf8 }
        }
        self.bytes = bytes
    }

    private var tokenBytes: ArraySlice<UInt8> { bytes.dropFirst().prefix(Int(bytes.first ?? 0)) }

    var tokenHex: String { Hex.string(tokenBytes) }

    subscript(part: Part) -> String? {
        var rest = bytes[tokenBytes.endIndex...]
        for _ in 0..<part.rawValue { rest = rest.dropFirst(max(1, Int(rest.first ?? 0))) }
        guard let length = rest.first, length > 0 else { return nil }
        return String(decoding: rest.dropFirst().prefix(Int(length) - 1), as: UTF8.self)
    }
}
