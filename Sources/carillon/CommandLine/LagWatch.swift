// SPDX-License-Identifier: Apache-2.0
import Glibc
import Kafka
import Recording
import Synchronization
import Telemetry

/// Polls a group's offsets on its own thread, so that absent brokers block nothing else.
final class LagWatch: Sendable {
    /// The latest result.
    struct View: Sendable {
        var looks = 0
        var partitions: [KafkaGroupLag.Partition] = []
        var gap = RetentionGap()
        /// The reason why the last query failed.
        var fault: String?
    }

    private let view = Guarded(View())
    private let isEnded = Atomic<Bool>(false)
    private static let pauseMicroseconds: UInt32 = 250_000

    /// - Parameter configuration: names the group.
    init(_ configuration: KafkaConfiguration, topics: [String]) {
        if !runDetached({ [self] in watch(configuration, topics) }) {
            view.withLock { $0.fault = "the system gives no thread" }
        }
    }

    var last: View { view.withLock { $0 } }

    func end() { isEnded.store(true, ordering: .releasing) }

    private func watch(_ configuration: KafkaConfiguration, _ topics: [String]) {
        var lag: KafkaGroupLag?
        while !isEnded.load(ordering: .acquiring) {
            do throws(KafkaFault) {
                let made: KafkaGroupLag
                if let lag { made = lag } else { made = try KafkaGroupLag(configuration, topics: topics) }
                lag = made
                let partitions = try made.measure()
                view.withLock { view in
                    view.looks += 1
                    view.partitions = partitions
                    view.fault = nil
                    for one in partitions {
                        view.gap.saw(
                            topic: one.topic, partition: one.partition, start: one.start, committed: one.committed)
                    }
                }
            } catch {
                let text = "\(error)"
                view.withLock { $0.fault = text }
            }
            usleep(Self.pauseMicroseconds)
        }
    }
}
