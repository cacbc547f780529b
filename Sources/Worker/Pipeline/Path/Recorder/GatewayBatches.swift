// SPDX-License-Identifier: Apache-2.0
import Digits

/// The deliveries of an event that are not sent yet, by gateway: each gateway gets one record.
final class GatewayBatches {
    struct Batch {
        let gateway: String
        var targets: [DeliveryTarget] = []
    }

    private var batches: [Batch] = []
    /// The places of many gateways; few are searched in turn.
    private var places: [UTF8Key: Int] = [:]
    private static let searchedMax = 16
    private var targetCount = 0
    /// Recipients that may be marked once the deliveries are acknowledged.
    var waiting: [WorkRef] = []

    /// All are sent.
    var isEmpty: Bool { targetCount == 0 }

    /// Adds a target.
    ///
    /// - Returns: the gateway's targets, if they fill a record.
    func add(_ target: DeliveryTarget, gateway: String, atMost most: Int) -> Batch? {
        let place = place(of: gateway)
        batches[place].targets.append(target)
        targetCount += 1
        guard batches[place].targets.count >= most else { return nil }
        var full = Batch(gateway: gateway)
        swap(&full, &batches[place])
        targetCount -= full.targets.count
        return full
    }

    private func place(of gateway: String) -> Int {
        let known =
            places.isEmpty ? batches.firstIndex { $0.gateway.isSame(as: gateway) } : places[UTF8Key(gateway)]
        if let known { return known }
        batches.append(Batch(gateway: gateway))
        if !places.isEmpty {
            places[UTF8Key(gateway)] = batches.count - 1
        } else if batches.count > Self.searchedMax {
            for (place, batch) in batches.enumerated() { places[UTF8Key(batch.gateway)] = place }
        }
        return batches.count - 1
    }

    /// The targets of a gateway; nil if there are none.
    func take() -> Batch? {
        places = [:]
        while let batch = batches.popLast() {
            if batch.targets.isEmpty { continue }
            targetCount -= batch.targets.count
            return batch
        }
        return nil
    }
}
