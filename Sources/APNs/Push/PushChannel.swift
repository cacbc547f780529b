// SPDX-License-Identifier: Apache-2.0

/// The broadcast channel that a push goes to, in place of a device (iOS 18, Live Activities).
///
/// Source: "Sending broadcast push notification requests to APNs". The path names the app, so the request has no topic.
public struct PushChannel: Sendable, Equatable {
    /// Header values as sent.
    let id: [UInt8]
    let path: [UInt8]

    /// - Parameters:
    ///   - id: as APNs returned it, in base64.
    ///   - bundleID: of the app, without a suffix.
    /// - Throws: `PushFault.badChannel` for an id that no channel has, `.badTopic` for a bundle id that cannot be part of a path.
    public init(_ id: String, bundleID: String) throws(PushFault) {
        guard BroadcastRequest.isChannel(id) else { throw .badChannel }
        let request = BroadcastRequest.send(channel: id, payload: [0], expirationSeconds: 0, priority: .immediate)
        guard request.problem(bundleID: bundleID) == nil else { throw .badTopic }
        self.id = Array(id.utf8)
        path = Array(request.path(bundleID: bundleID).utf8)
    }
}
