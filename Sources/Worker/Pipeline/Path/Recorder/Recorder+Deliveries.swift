// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import JSON
import Kafka
import PushCore
import Telemetry

/// Records of `im.deliveries`: one per (event, gateway).
extension Recorder {
    /// The bytes of deliveries on the way to the broker; one record may exceed it.
    private static let deliveriesMax = 8 << 20

    func deliver(_ target: DeliveryTarget, gateway: String, of job: RecipientJob) {
        job.flags.insert(.hasDelivery)
        let event = job.event
        let batches = event.deliveries ?? GatewayBatches()
        event.deliveries = batches
        let full = batches.add(target, gateway: gateway, atMost: shard.limits.deliveryTargetsMax)
        if let full { produce(full, of: event) }
    }

    /// One record per gateway, when all recipients of the event are decided. A group with waiting members sends every
    /// second.
    func flushDeliveries(of event: EventJob, evenIfUndecided: Bool = false) {
        guard event.hasUnsentDeliveries, (event.undecided == 0 && event.audience.isEmpty) || evenIfUndecided
        else { return }
        if flush(event) { return }
        if !undelivered.contains(event.ref) { undelivered.append(event.ref) }
    }

    /// - Returns: false if the rest waits for room on the way to the broker.
    private func flush(_ event: EventJob) -> Bool {
        while deliveryBytes < Self.deliveriesMax {
            guard let batch = event.deliveries?.take() else { return true }
            produce(batch, of: event)
        }
        return !event.hasUnsentDeliveries
    }

    private func produce(_ batch: GatewayBatches.Batch, of event: EventJob) {
        let raw = event.raw
        var writer = JSONWriter(reservingCapacity: raw.count + 160 * batch.targets.count + 64)
        DeliveryTarget.writeRecord(
            of: batch.targets, gateway: batch.gateway, app: event.app.id, event: raw, to: &writer)
        event.openParts += 1
        event.unackedDeliveries += 1
        deliveryBytes += raw.count
        event.app.metrics.deliveries.add(UInt64(batch.targets.count))
        outbox.send(topics.deliveries, key: batch.gateway, value: writer, tag: event.tag(.delivery))
    }

    /// The broker has a delivery. Returns the recipients that waited for it.
    func didSettleDelivery(_ event: EventJob) -> [WorkRef] {
        event.unackedDeliveries -= 1
        deliveryBytes -= event.raw.count
        while let ref = undelivered.first {
            if let waiting = work.event(ref), !flush(waiting) { break }
            undelivered.removeFirst()
        }
        guard event.areDeliveriesSettled, let deliveries = event.deliveries else { return [] }
        defer { deliveries.waiting = [] }
        return deliveries.waiting
    }
}
