// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import Telemetry

/// The parts of a pipeline.
struct PipelineParts {
    var loop: Loop
    var limits: PipelineLimits
    var apps: [AppContext]
    /// Three consumers of one group: events; user state and `carillon.parked`; chunks.
    var events: KafkaConsumer
    var userState: KafkaConsumer
    var chunks: KafkaConsumer
    var outbox: Outbox
    var topics: OutTopics
    var store: StateStore
    var log: Log
    var metrics: PipelineMetrics
    var results: Configuration.Results
    /// Whether results of user-state records go to `push.state-results`.
    var stateResults: Bool
    /// Whether lost tokens or old data stop reading (`token_loss: stop`).
    var stopsAtTokenLoss = true
    /// Where user state is read again.
    var replaySource: any StateReplaySource
    var traces: TracePlan
    /// How long the statistics keep a number.
    var statisticsDays: Int
    /// The session timeout of the Kafka group, ms.
    var sessionMs: Int64
    /// Nil if waits are not measured.
    var waits: StageWaits?
    /// Data shared by the process's shards.
    var shared: ProcessShared
    /// The number of this shard.
    var shardIndex: Int
}

/// Receives the pipeline's events for the shard.
protocol PipelineOwner: AnyObject {
    /// Once a second.
    func pipelineDidTick()
    /// A commit was answered, with success or failure.
    func pipelineDidCommit()
    /// After `close()`: all consumers have left their group.
    func pipelineDidClose()
    /// The process must end, for this cause.
    func pipelineDidMeetFatalError(_ cause: FatalCause)
}

/// Why a process must end.
public enum FatalCause: Sendable {
    /// The Kafka client has failed permanently.
    case kafka
    /// Workers of another consumer group use the same Redis.
    case otherGroup
}
