// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Telemetry

/// The lowest layer of a client: its loop, bounds, metrics and random numbers, and the reports to its owner.
final class ClientContext {
    let loop: Loop
    let endpoint: APNsEndpoint
    let limits: APNsLimits
    let metrics: APNsMetrics
    let log: Log
    var random: SmallRandom
    /// The client of the reports, which owns this. (Unmanaged: a count of references per push would be for nothing.)
    var client: Unmanaged<APNsClient>?
    unowned var delegate: (any APNsClientDelegate)?

    init(
        loop: Loop, endpoint: APNsEndpoint, limits: APNsLimits, metrics: APNsMetrics, log: Log,
        delegate: (any APNsClientDelegate)?, seed: UInt64?
    ) {
        self.loop = loop
        self.endpoint = endpoint
        self.limits = limits
        self.metrics = metrics
        self.log = log
        self.delegate = delegate
        random = SmallRandom(seed: seed ?? loop.makeSeed())
    }

    /// A push has ended.
    func finished(_ tag: UInt64, _ outcome: PushOutcome, attempts: Int) {
        client?._withUnsafeGuaranteedRef {
            delegate?.apns($0, didFinish: tag, outcome: outcome, attempts: attempts)
        }
    }

    /// A push waits because its device backs off.
    func held(_ tag: UInt64) { client?._withUnsafeGuaranteedRef { delegate?.apns($0, didHold: tag) } }

    /// A push is set aside until its owner has checked it.
    func wantsCheck(_ tag: UInt64, _ ticket: PushTicket) {
        client?._withUnsafeGuaranteedRef { delegate?.apns($0, wantsCheck: tag, ticket: ticket) }
    }

    /// Something changed that does not concern one push.
    func changed(_ event: APNsClientEvent) {
        client?._withUnsafeGuaranteedRef { delegate?.apns($0, stateChanged: event) }
    }
}
