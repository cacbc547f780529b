// SPDX-License-Identifier: Apache-2.0
/// Receives the outcomes of pushes, on the loop's thread. Every method may call the client's `send`.
public protocol APNsClientDelegate: AnyObject {
    /// A push that `send` accepted has ended. Called exactly once for each.
    ///
    /// - Parameters:
    ///   - client: the client that accepted it.
    ///   - tag: the sender's tag of the push.
    ///   - outcome: the result.
    ///   - attempts: requests written for it; 0 if it was never sent.
    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int)

    /// APNs asked to leave the device of this push alone for a time (429). It waits, and the newest push of its kind
    /// for the device replaces it. A caller that sends one push per device at a time may send the next now.
    func apns(_ client: APNsClient, didHold tag: UInt64)

    /// A push is about to be sent, and its `send` or its last check is older than `APNsLimits.checkAfterNanos`. It is
    /// set aside until `confirm`, `renew` or `withdraw` is called with the ticket, now or in any later turn.
    ///
    /// Asked again before each further attempt under the same condition, and only while the push could be sent at once.
    /// It may expire in this time: then its outcome comes and the ticket is stale. Never called inside `send`.
    func apns(_ client: APNsClient, wantsCheck tag: UInt64, ticket: PushTicket)

    /// A change that a caller or an operator may want to act on.
    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent)
}

extension APNsClientDelegate {
    public func apns(_ client: APNsClient, didHold tag: UInt64) {}

    public func apns(_ client: APNsClient, wantsCheck tag: UInt64, ticket: PushTicket) { client.confirm(ticket) }

    public func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {}
}

/// Events of a client that do not concern one push.
public enum APNsClientEvent: Sendable, Equatable {
    /// A connection is ready after a time without one.
    case usable
    /// The last ready connection ended, or none could be opened.
    case unusable(cause: String)
    /// APNs refused the credential. Pushes wait, and one is tried every `credentialProbeNanos`.
    case credentialPaused(APNsReason)
    case credentialResumed
    /// `send` refused a push as full, and now a quarter of the table is free.
    case hasRoom
    /// After `drain()`: no push is held any more.
    case drained
}

/// APNs' reason for ending connections or refusing the credential.
public enum APNsFarewell: Sendable, Equatable, CustomStringConvertible {
    /// The error code's name in RFC 9113, and the reason in its debug data.
    case goAway(code: String, reason: APNsReason)
    case answer(status: Int, reason: APNsReason)

    public var description: String {
        switch self {
        case .goAway(let code, let reason):
            reason == .absent ? "APNs sent GOAWAY (\(code))" : "APNs sent GOAWAY: \(reason.text) (\(code))"
        case .answer(let status, let reason): "APNs answered \(status) \(reason.text)"
        }
    }
}

/// The result of `send`.
public enum Admission: Sendable, Equatable {
    /// Accepted. An outcome will come.
    case taken
    /// Accepted. The device backs off, so the push waits and a newer one may replace it. An outcome will come.
    case held
    /// `APNsLimits.pushesMax` pushes are held (fewer for the lower lanes, see `PushLane`): wait for `hasRoom`. No
    /// outcome will come.
    case full
    /// The client drains or is closed. No outcome will come.
    case closed
    /// APNs can never accept it. No outcome will come.
    case unfit(PushFault)
}
