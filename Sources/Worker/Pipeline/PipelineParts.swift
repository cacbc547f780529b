import EventLoop
import Kafka
import Telemetry

/// What a pipeline is made of.
struct PipelineParts {
    var loop: Loop
    var limits: PipelineLimits
    var apps: [AppContext]
    /// Consumers of one group: of the events topic, and of the user-state topic.
    var events: KafkaConsumer
    var userState: KafkaConsumer
    var chunks: KafkaConsumer
    var outbox: Outbox
    var topics: OutTopics
    var store: StateStore
    var log: Log
    var metrics: PipelineMetrics
    var results: Configuration.Results
    /// Whether records of user state are told of in `push.state-results`.
    var stateResults: Bool
    /// `token_loss: stop`.
    var stopsAtTokenLoss = true
    /// Where user state is read again.
    var replaySource: StateReplay.Source
    var traces: TracePlan
    /// Nil: nobody asks what messages wait for.
    var waits: StageWaits?
    /// What the shards of the process share.
    var shared: ProcessShared
    /// Which of its shards this is.
    var shardIndex: Int
}

/// What the shard hears of its pipeline.
protocol PipelineOwner: AnyObject {
    /// Once a second.
    func pipelineDidTick()
    /// A commit was answered, well or not.
    func pipelineDidCommit()
    /// After `close()`: both consumers have left their group.
    func pipelineDidClose()
    /// A Kafka client is dead for good.
    func pipelineDidMeetFatalError()
}
