// Whether pushes wait for more than their turn.
extension APNsClient {
    /// Nothing but probes goes: no connection is ready, APNs refuses the credential, or it says that it is unavailable.
    public var isHeldUp: Bool { !wasUsable || gate.isPaused || breaker.isOpen }
}
