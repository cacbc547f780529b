// SPDX-License-Identifier: Apache-2.0
import Digits
public import PushCore

/// The gateways' leases as read within the last second. Without a lease of the same epoch a presence entry is void.
///
/// Pure and bounded: `now` comes from outside. When full it drops everything, which costs one read per gateway.
public struct LeaseCache: Sendable {
    private struct Lease {
        /// Nil if the gateway has no lease.
        var epoch: Int64?
        var readNanos: UInt64
    }

    private var leases: [UTF8Key: Lease] = [:]
    private let lifetimeNanos: UInt64
    private let capacity: Int

    public init(lifetimeNanos: UInt64 = 1_000_000_000, capacity: Int = 4096) {
        self.lifetimeNanos = lifetimeNanos
        self.capacity = max(1, capacity)
    }

    public enum Answer: Sendable, Equatable {
        case held(epoch: Int64)
        case notHeld
        /// Must be read (`StateStore.lease`) and stored.
        case unknown
    }

    public func answer(for gateway: String, nowNanos: UInt64) -> Answer {
        guard let lease = leases[UTF8Key(gateway)],
            lease.readNanos >= nowNanos || nowNanos - lease.readNanos < lifetimeNanos
        else { return .unknown }
        return lease.epoch.map(Answer.held) ?? .notHeld
    }

    /// Stores the content of `gw:{id}`; nil or an invalid value means no lease.
    public mutating func store(_ gateway: String, epoch: Int64?, nowNanos: UInt64) {
        let key = UTF8Key(gateway)
        if leases.count >= capacity, leases[key] == nil { leases.removeAll(keepingCapacity: true) }
        leases[key] = Lease(epoch: epoch, readNanos: nowNanos)
    }

    /// The first gateway of the recipient that must be read before its presence can be evaluated.
    public func unknownGateway(of recipient: borrowing Recipient, nowNanos: UInt64) -> String? {
        for entry in recipient.presence where entry.state != .off {
            if answer(for: entry.gateway, nowNanos: nowNanos) == .unknown { return entry.gateway }
        }
        return nil
    }

    /// Switches off entries without a lease of their epoch. An unknown lease counts as none, so that a lost gateway can
    /// cause an extra push but never lose a message.
    ///
    /// - Parameter nowNanos: when the unknown leases were asked for. One that was known then may have become too old since.
    public func apply(to recipient: inout Recipient, nowNanos: UInt64) {
        for index in recipient.presence.indices {
            let entry = recipient.presence[index]
            if answer(for: entry.gateway, nowNanos: nowNanos) != .held(epoch: entry.gatewayEpoch) {
                recipient.presence[index].state = .off
            }
        }
    }
}
