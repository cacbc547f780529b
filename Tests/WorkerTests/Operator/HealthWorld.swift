// SPDX-License-Identifier: Apache-2.0
import Fleet

@testable import Worker

/// Notes as the rules make them from two looks at metrics.
enum HealthWorld {
    /// - Parameter rejected: of 1000 pushes that APNs answered.
    static func notes(rejected: Int) -> [HealthNote] {
        func look(_ seconds: UInt64, _ share: Int) -> WorkerLook {
            let text = """
                process_start_time_seconds 1
                carillon_push_attempts_total{app="im",env="production",result="accepted"} \((1000 - rejected) * share)
                carillon_push_attempts_total{app="im",env="production",result="rejected"} \(rejected * share)
                carillon_decisions_total{app="im",verdict="rejected",reason="Unregistered"} \(rejected * share)
                """
            let names = HealthLook.metrics
            return WorkerLook(
                address: "", atNanos: seconds * 1_000_000_000,
                answer: .facts(MetricsPage(Array(text.utf8), names: names), StatusFacts()))
        }
        return HealthLook(look(180, 1), after: look(0, 0), wallSeconds: 0).notes
    }
}
