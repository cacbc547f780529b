/// One notification for one device, as handed to a client.
public struct Push: Sendable {
    // References first: see the initialiser.

    public let headers: PushHeaders
    /// The JSON body. Arrays share storage, so that one payload can serve many pushes without a copy.
    public let payload: [UInt8]
    public let token: DeviceToken
    /// Sent as `apns-id` on every attempt.
    public let id: PushID
    /// The caller's own number for it; comes back with the outcome.
    public let tag: UInt64
    /// Unix ms after which no attempt begins; the push then ends as `expired`.
    public let expiresAtMs: Int64
    /// Its share where many wait.
    public let lane: PushLane
    /// The token was never confirmed, or not for long: the push travels on a connection apart.
    ///
    /// APNs answers a rejection by taking streams from the connection, so that a burst of dead tokens would slow down
    /// everyone else. Tokens that this client saw rejected lately go that way without being asked; those that it saw
    /// accepted on it, within a day, travel with the others.
    public let isSuspect: Bool

    /// What Apple would reject whatever the device; nil when fit to send.
    func fault(hasToken: Bool) -> PushFault? {
        if payload.isEmpty { return .payloadEmpty }
        let max = headers.pushType.payloadMax
        if payload.count > max { return .payloadTooLarge(max: max) }
        return headers.pushType.needsToken && !hasToken ? .needsTokenCredential : nil
    }
}

extension Push {
    /// Hands on to the memberwise initialiser, which moves its arguments; one that assigned them to so many fields would
    /// end with a copy of them all.
    public init(
        tag: UInt64, token: DeviceToken, headers: PushHeaders, id: PushID, payload: [UInt8],
        expiresAtMs: Int64 = .max, lane: PushLane = .direct, isSuspect: Bool = false
    ) {
        self.init(
            headers: headers, payload: payload, token: token, id: id, tag: tag, expiresAtMs: expiresAtMs, lane: lane,
            isSuspect: isSuspect)
    }
}
