/// Why a loop, or something bound to one, could not be made.
public struct LoopFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was refused, in a form that code can compare.
    public enum Reason: Sendable, Equatable {
        /// libevent or the system had no memory or descriptors left.
        case resources
        /// The address could not be bound.
        case bind
        /// Another process has the address.
        case addressInUse
        /// The signal is watched already, or cannot be watched.
        case signal
    }

    public let reason: Reason
    public let detail: String

    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    public var description: String { detail }
}
