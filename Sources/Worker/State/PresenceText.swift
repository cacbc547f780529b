// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// `state,platform,gateway,gw_epoch,conn_epoch,last_ms,bg_since_ms,active_conv,flags` (contract section 4).
enum PresenceText {
    /// - Returns: nil for a malformed value, or one over its limits. Its device is then suspended, as if it were
    ///   absent.
    ///
    /// `active_conv` may contain commas: it is the part between the seventh comma and the last.
    static func entry(device: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> DevicePresence? {
        let comma = UInt8(ascii: ",")
        var text = CompactText(value)
        guard let device = CompactText.text(device, atMost: InputLimit.user),
            let state = text.text(until: comma).flatMap(DevicePresence.State.init(rawValue:)),
            let platform = text.text(until: comma).flatMap(DevicePresence.Platform.init(rawValue:)),
            let gateway = text.text(until: comma), !gateway.isEmpty, gateway != "-",
            let gatewayEpoch = text.number(until: comma),
            let connectionEpoch = text.number(until: comma), let lastMs = text.number(until: comma)
        else { return nil }
        let since = text.word(until: comma)
        let backgroundSince = Decimal.signed(since)
        guard backgroundSince != nil || isNone(since) else { return nil }
        let tail = text.word(until: 0)
        guard let split = tail.lastIndex(of: comma) else { return nil }
        let flags = tail[(split + 1)...]
        let conversation = UnsafeRawBufferPointer(rebasing: tail[..<split])
        guard flags.count <= InputLimit.name,
            let active = CompactText.text(conversation, atMost: InputLimit.user)
        else { return nil }
        return DevicePresence(
            device: device, state: state, platform: platform, gateway: gateway,
            gatewayEpoch: gatewayEpoch, connectionEpoch: connectionEpoch, lastMs: lastMs,
            backgroundSinceMs: backgroundSince,
            activeConversation: isNone(conversation) || active.isEmpty ? nil : active,
            raisesLocalAlert: flags.contains(UInt8(ascii: "l")))
    }

    private static func isNone(_ word: UnsafeRawBufferPointer) -> Bool {
        word.count == 1 && word.first == UInt8(ascii: "-")
    }
}
