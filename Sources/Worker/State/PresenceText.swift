import PushCore

/// `state,platform,gateway,gw_epoch,conn_epoch,last_ms,bg_since_ms,active_conv,flags` (contract section 4).
enum PresenceText {
    /// Nil for a malformed value: its device is then suspended, as if it were not there.
    ///
    /// `active_conv` may hold commas itself: it is what lies between the seventh comma and the last.
    static func entry(device: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> DevicePresence? {
        let comma = UInt8(ascii: ",")
        var text = CompactText(value)
        guard let state = DevicePresence.State(rawValue: text.text(until: comma)),
            let platform = DevicePresence.Platform(rawValue: text.text(until: comma))
        else { return nil }
        let gateway = text.text(until: comma)
        guard !gateway.isEmpty, gateway != "-", let gatewayEpoch = text.number(until: comma),
            let connectionEpoch = text.number(until: comma), let lastMs = text.number(until: comma)
        else { return nil }
        let since = text.text(until: comma)
        let backgroundSince = Int64(since)
        guard since == "-" || backgroundSince != nil else { return nil }
        let tail = text.text(until: 0)
        guard let split = tail.lastIndex(of: ",") else { return nil }
        let active = tail[..<split]
        let flags = tail[tail.index(after: split)...]
        return DevicePresence(
            device: String(decoding: device, as: UTF8.self), state: state, platform: platform, gateway: gateway,
            gatewayEpoch: gatewayEpoch, connectionEpoch: connectionEpoch, lastMs: lastMs,
            backgroundSinceMs: backgroundSince,
            activeConversation: active == "-" || active.isEmpty ? nil : String(active),
            raisesLocalAlert: flags.contains("l"))
    }
}
