/// One notification for one device, as handed to a client.
public struct Push: Sendable {
    /// The caller's own number for it; comes back with the outcome.
    public let tag: UInt64
    public let token: DeviceToken
    public let headers: PushHeaders
    /// Sent as `apns-id` on every attempt.
    public let id: PushID
    /// The JSON body. Arrays share storage, so that one payload can serve many pushes without a copy.
    public let payload: [UInt8]
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

    public init(
        tag: UInt64, token: DeviceToken, headers: PushHeaders, id: PushID, payload: [UInt8],
        expiresAtMs: Int64 = .max, lane: PushLane = .direct, isSuspect: Bool = false
    ) {
        self.tag = tag
        self.token = token
        self.headers = headers
        self.id = id
        self.payload = payload
        self.expiresAtMs = expiresAtMs
        self.lane = lane
        self.isSuspect = isSuspect
    }

    /// What Apple would reject whatever the device; nil when fit to send.
    func fault(hasToken: Bool) -> PushFault? {
        if payload.isEmpty { return .payloadEmpty }
        let max = headers.pushType.payloadMax
        if payload.count > max { return .payloadTooLarge(max: max) }
        return headers.pushType.needsToken && !hasToken ? .needsTokenCredential : nil
    }
}
