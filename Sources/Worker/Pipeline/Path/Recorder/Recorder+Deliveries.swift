// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import JSON
import Kafka
import PushCore
import Telemetry

/// Records of `im.deliveries`: one per (event, gateway).
extension Recorder {
    /// Maximum gateways with collected targets, because they are searched linearly. Further gateways send the first
    /// one's.
    private static let gatewaysMax = 256

    func deliver(_ target: DeliveryTarget, gateway: String, of job: RecipientJob) {
        job.flags.insert(.hasDelivery)
        let event = job.event
        let index =
            event.deliveries.firstIndex { $0.gateway.isSame(as: gateway) }
            ?? {
                if event.deliveries.count >= Self.gatewaysMax { produce(event.deliveries.removeFirst(), of: event) }
                event.deliveries.append(EventJob.GatewayBatch(gateway: gateway, targets: []))
                return event.deliveries.count - 1
            }()
        event.deliveries[index].targets.append(target)
        if event.deliveries[index].targets.count >= shard.limits.deliveryTargetsMax {
            produce(event.deliveries.remove(at: index), of: event)
        }
    }

    /// One record per gateway, when all recipients of the event are decided. A group with waiting members sends every
    /// second.
    func flushDeliveries(of event: EventJob, evenIfUndecided: Bool = false) {
        guard !event.deliveries.isEmpty, (event.undecided == 0 && event.audience.isEmpty) || evenIfUndecided
        else { return }
        let batches = event.deliveries
        event.deliveries = []
        for batch in batches { produce(batch, of: event) }
    }

    private func produce(_ batch: EventJob.GatewayBatch, of event: EventJob) {
        let raw = event.raw
        var writer = JSONWriter(reservingCapacity: raw.count + 160 * batch.targets.count + 64)
        DeliveryTarget.writeRecord(
            of: batch.targets, gateway: batch.gateway, app: event.app.id, event: raw, to: &writer)
        event.openParts += 1
        event.unackedDeliveries += 1
        event.app.metrics.deliveries.add(UInt64(batch.targets.count))
        outbox.send(topics.deliveries, key: batch.gateway, value: writer, tag: event.tag(.delivery))
    }

    /// The broker has a delivery. Returns the recipients that waited for it.
    func didSettleDelivery(_ event: EventJob) -> [WorkRef] {
        event.unackedDeliveries -= 1
        guard event.areDeliveriesSettled else { return [] }
        defer { event.waitingForDeliveries = [] }
        return event.waitingForDeliveries
    }
}
