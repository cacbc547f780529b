// SPDX-License-Identifier: Apache-2.0
/// One notification for one device, as given to a client.
public struct Push: Sendable {
    // References first: see the initialiser.

    public let headers: PushHeaders
    /// The JSON body. Arrays share storage, so that one payload can serve many pushes without a copy.
    public let payload: [UInt8]
    public let token: DeviceToken
    /// Sent as `apns-id` on every attempt.
    public let id: PushID
    /// The caller's number for it, returned with the outcome.
    public let tag: UInt64
    /// Unix ms after which no attempt begins; the push then ends as `expired`.
    public let expiresAtMs: Int64
    /// Its lane, for the share of the streams.
    public let lane: PushLane
    /// The token was never confirmed, or not for long: the push uses a separate connection.
    ///
    /// APNs reacts to a rejection by reducing the connection's streams, so a burst of dead tokens would slow down all
    /// others. Recently rejected tokens are treated as suspect automatically. Suspect tokens that were accepted within
    /// a day use the main connections.
    public let isSuspect: Bool

    /// The reason why Apple would reject it for any device; nil if it can be sent.
    func fault(hasToken: Bool) -> PushFault? {
        if payload.isEmpty { return .payloadEmpty }
        let max = headers.channel == nil ? headers.pushType.payloadMax : PushType.broadcastPayloadMax
        if payload.count > max { return .payloadTooLarge(max: max) }
        return headers.pushType.needsToken && !hasToken ? .needsTokenCredential : nil
    }
}

extension Push {
    /// Calls the memberwise initialiser, which moves its arguments. Assigning so many fields would end with a copy of
    /// them all.
    public init(
        tag: UInt64, token: DeviceToken, headers: PushHeaders, id: PushID, payload: [UInt8],
        expiresAtMs: Int64 = .max, lane: PushLane = .direct, isSuspect: Bool = false
    ) {
        self.init(
            headers: headers, payload: payload, token: token, id: id, tag: tag, expiresAtMs: expiresAtMs, lane: lane,
            isSuspect: isSuspect)
    }
}
