// SPDX-License-Identifier: Apache-2.0
import APNs
import Telemetry

/// The time of messages from step to step, by lane, to see where they wait (`run --stage-times`).
///
/// Times are the beginnings of turns: work within a turn takes no time here, waiting for the next turn does.
final class StageWaits {
    /// The steps of a push, each from the end of the previous one.
    enum Step: Int, CaseIterable {
        /// From the broker's timestamp until the record is read.
        case kafka
        /// Until there is room for its recipient.
        case start
        /// Until all inputs of the decision are read.
        case lookup
        /// Until claim and owner are answered.
        case claim
        /// Until APNs has answered: the device's turn, a stream, the round trip.
        case push
    }

    private let registry: MetricsRegistry
    /// In the order of `PushLane`; created with the lane's first message.
    private var lanes: [[Histogram]]

    static let boundsSeconds = [
        0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.006, 0.008, 0.012, 0.016, 0.024, 0.032, 0.048, 0.064, 0.096,
        0.128,
        0.192, 0.256, 0.512, 1, 4, 16,
    ]

    init(_ registry: MetricsRegistry) {
        self.registry = registry
        lanes = Array(repeating: [], count: PushLane.allCases.count)
    }

    func took(_ step: Step, _ lane: PushLane, nanos: UInt64) {
        let place = Int(lane.rawValue)
        if lanes[place].isEmpty { lanes[place] = Step.allCases.map { make($0, lane) } }
        lanes[place][step.rawValue].observe(nanos)
    }

    private func make(_ step: Step, _ lane: PushLane) -> Histogram {
        registry.histogram(
            "carillon_step_seconds", help: "From step to step of a push's path, by lane.",
            labels: [("step", "\(step)"), ("lane", "\(lane.name)")], bounds: Self.boundsSeconds)
    }
}
