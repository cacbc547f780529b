import Dispatch
import Kafka
import LocalServers
import Processes
import StageWords
import Support
import Telemetry

/// A member of the workers' group that takes its share of the partitions and does nothing with it: it makes the group
/// share out anew when it comes and when it goes, however busy the workers are.
final class Guest: Sendable {
    private let isLeaving = Guarded(false)
    private let ended = DispatchSemaphore(value: 0)

    /// Joins; it has no share before the group has let go.
    init(_ stage: Stage, topics: [String]) {
        var client = stage.world.kafka
        client.group = "carillon"
        client.options["session.timeout.ms"] = String(LocalCluster.Settings.shortSessionMs)
        client.options["heartbeat.interval.ms"] = "1000"
        let configuration = client
        // A consumer belongs to one thread.
        DispatchQueue(label: "guest").async { [isLeaving, ended] in
            defer { ended.signal() }
            guard let consumer = try? KafkaConsumer(configuration, topics: topics) else { return }
            while !isLeaving.withLock({ $0 }) {
                consumer.poll(max: 1000)
                consumer.wait(timeoutMs: 50)
            }
            _ = consumer.close(timeoutMs: 10_000)
        }
    }

    /// Leaves and waits for the end of it.
    func leave() async {
        isLeaving.withLock { $0 = true }
        let ended = ended
        _ = try? await offPool { ended.wait() }
    }
}
