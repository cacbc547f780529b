/// Hears what became of pushes, on the loop's thread. Every method may call the client's `send`.
public protocol APNsClientDelegate: AnyObject {
    /// A push that `send` took has ended; exactly once for each.
    ///
    /// - Parameters:
    ///   - client: which had taken it.
    ///   - tag: of the push, as its sender chose it.
    ///   - outcome: what became of it.
    ///   - attempts: requests written for it, 0 when it never left.
    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int)

    /// APNs wants the device of this push left alone for a while (429): it waits, and the newest push of its kind that
    /// comes for the device meanwhile takes its place. Who sends one at a time per device may send the next now.
    func apns(_ client: APNsClient, didHold tag: UInt64)

    /// A push is about to leave, and its `send` or its last check is older than `APNsLimits.checkAfterNanos`: it is set
    /// aside until `confirm`, `renew` or `withdraw` answers for the ticket, now or in any later turn.
    ///
    /// Asked again before each further try under the same condition, and only while the push could leave at once. It may
    /// expire meanwhile: then its outcome comes and the ticket is stale. Never called from inside `send`.
    func apns(_ client: APNsClient, wantsCheck tag: UInt64, ticket: PushTicket)

    /// Something changed that a caller or an operator may want to act on.
    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent)
}

extension APNsClientDelegate {
    public func apns(_ client: APNsClient, didHold tag: UInt64) {}

    public func apns(_ client: APNsClient, wantsCheck tag: UInt64, ticket: PushTicket) { client.confirm(ticket) }

    public func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {}
}

/// News of a client that are not about one push.
public enum APNsClientEvent: Sendable, Equatable {
    /// A connection is ready where there was none.
    case usable
    /// The last ready connection went, or none could be made.
    case unusable(cause: String)
    /// APNs refused the credential; pushes wait and one is tried every `credentialProbeNanos`.
    case credentialPaused(APNsReason)
    case credentialResumed
    /// `send` refused a push as full, and now a quarter of the table is free.
    case hasRoom
    /// After `drain()`: nothing is held any more.
    case drained
}

/// What APNs said when it took leave of connections or refused the credential.
public enum APNsFarewell: Sendable, Equatable, CustomStringConvertible {
    /// The code by RFC 9113's name, and the reason in its debug data.
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

/// What `send` did with a push.
public enum Admission: Sendable, Equatable {
    /// Taken; an outcome will come.
    case taken
    /// Taken; the device backs off, so it waits and a newer one may take its place. An outcome will come.
    case held
    /// `APNsLimits.pushesMax` are held already (less for the lower lanes, see `PushLane`): wait for `hasRoom`. No outcome will come.
    case full
    /// The client drains or is closed. No outcome will come.
    case closed
    /// It could never be accepted. No outcome will come.
    case unfit(PushFault)
}
