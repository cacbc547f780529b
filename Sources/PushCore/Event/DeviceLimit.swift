// SPDX-License-Identifier: Apache-2.0
import Digits

/// The devices that a message goes to, where its sender names them (contract section 2, `to.devices` and `to.tokens`).
///
/// By reference: few messages have one, and each message would hold room for it.
public final class DeviceLimit: Sendable, Equatable {
    /// Only these devices of the recipients; nil: the record names none.
    public let devices: [String]?
    /// Only the devices of these tokens, whatever the tokens' type. Their owners are the recipients. Nil: the record names none.
    public let tokens: [String]?
    private let deviceIndex: TextIndex?
    private let tokenIndex: TextIndex?

    public init(devices: [String]? = nil, tokens: [String]? = nil) {
        self.devices = devices
        self.tokens = tokens
        deviceIndex = devices.flatMap { TextIndex($0) }
        tokenIndex = tokens.flatMap { TextIndex($0) }
    }

    public static func == (one: DeviceLimit, other: DeviceLimit) -> Bool {
        one.devices == other.devices && one.tokens == other.tokens
    }

    /// Whether the message goes to this device of the recipient.
    func allows(_ device: String, of recipient: borrowing Recipient) -> Bool {
        if let devices, !(deviceIndex?.contains(device) ?? devices.containsSame(device)) { return false }
        guard tokens != nil else { return true }
        return recipient.tokens.indices.contains { index in
            recipient.tokens[index].device.isSame(as: device) && names(token: recipient.tokens[index].record.hex)
        }
    }

    private func names(token: String) -> Bool { tokenIndex?.contains(token) ?? tokens?.containsSame(token) ?? false }
}

/// A list that each recipient is looked for in. A record of one MiB can name a hundred thousand: searched one by one for
/// the members of a large group, they would hold up every other user of the shard.
struct TextIndex: Sendable, Equatable {
    private let texts: Set<UTF8Key>

    /// - Returns: nil for a list that is searched faster element by element.
    init?(_ texts: [String]) {
        guard texts.count > 32 else { return nil }
        self.texts = Set(texts.lazy.map { UTF8Key($0) })
    }

    func contains(_ text: String) -> Bool { texts.contains(UTF8Key(text)) }
}
