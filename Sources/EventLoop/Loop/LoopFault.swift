// SPDX-License-Identifier: Apache-2.0
/// The reason why a loop, or an object bound to one, could not be created.
public struct LoopFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of fault, for comparisons in code.
    public enum Reason: Sendable, Equatable {
        /// libevent or the system had no memory or descriptors left.
        case resources
        /// The address could not be bound.
        case bind
        /// Another process has the address.
        case addressInUse
        /// The signal is already watched, or cannot be watched.
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
