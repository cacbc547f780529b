// SPDX-License-Identifier: Apache-2.0
import Kafka

/// A client's membership of its group: joining, heartbeats, rebalances, leaving.
///
/// As librdkafka does it: an eager group revokes everything before it joins anew; a cooperative one joins with what it holds,
/// gives back what the new assignment lacks, and joins again. The owner answers each rebalance by an assign or unassign call;
/// meanwhile errors of heartbeats change nothing.
final class ModelMembership {
    private enum Phase {
        /// Waits for its next attempt.
        case out
        case joining
        case syncing
        /// The owner was told of partitions, and has not called assign.
        case awaitsAssign
        /// The owner was told of a revocation, and has not called unassign.
        case awaitsUnassign
        /// Commits have no answer yet.
        case awaitsCommits
        case steady
        case closed
    }

    private unowned let client: ModelGroupClient
    private let connection: ModelConnection
    private var phase = Phase.out
    private var memberID = ""
    private var generation = -1
    /// What the group has given it.
    private var owned: [TopicPartition] = []
    /// Whether the group has given an assignment that is not taken back, possibly an empty one.
    private var hasAssignment = false
    /// What a cooperative assignment adds after its revocation.
    private var pendingAdded: [TopicPartition] = []
    /// Joins again when the owner has answered.
    private var rejoins = false
    private var isClosing = false
    private(set) var isLost = false
    /// The owner was silent for too long: it joins when the owner polls again.
    private var isPollExceeded = false
    private var lastPoll: UInt64
    /// The last answer to a heartbeat, or its equal.
    private var lastContact: UInt64
    private var joinAttempt = 0

    private var model: KafkaModel { client.model }
    private var options: ModelGroupOptions { client.options }
    private var group: ModelGroup { model.group(options.group) }

    init(_ client: ModelGroupClient, _ connection: ModelConnection) {
        self.client = client
        self.connection = connection
        lastPoll = client.model.now()
        lastContact = client.model.now()
    }

    var isClosed: Bool { phase == .closed }

    var identity: ModelGroup.Identity {
        ModelGroup.Identity(memberID: memberID, generation: generation, instanceID: options.instanceID)
    }

    func start() {
        join()
        beatLater()
    }

    // MARK: - Joining

    private func join() {
        if phase == .closed || client.fatalError != nil { return }
        if isClosing { return end() }
        phase = .joining
        joinAttempt += 1
        let attempt = joinAttempt
        var join = ModelGroup.Join(
            memberID: memberID, instanceID: options.instanceID, topics: client.topics, strategy: options.strategy,
            owned: [], sessionNanos: options.sessionNanos, rebalanceNanos: options.maxPollNanos)
        if client.isCooperative { join.owned = owned.map(client.place) }
        connection.ask(broker: client.coordinatorBroker, losing: model.settings.lostGroupCalls) { [group] reply in
            group.join(join) { reply($0) }
        } _: { [weak self] (answer: Result<ModelGroup.Joined, KafkaError>?) in
            guard let self, attempt == joinAttempt, phase == .joining else { return }
            client.noteReached(answer != nil)
            switch answer {
            case .success(let joined):
                memberID = joined.memberID
                generation = joined.generation
                lastContact = model.now()
                sync(attempt)
            case .failure(let error): joinFailed(error)
            case nil: joinLater()
            }
        }
    }

    private func joinFailed(_ error: KafkaError) {
        if error == .fenced { return client.fail(error) }
        if error == .unknownMember { memberID = "" }
        joinLater()
    }

    private func joinLater() {
        phase = .out
        client.host.after(model.pick(model.settings.retryNanos)) { [weak self] in
            if let self, phase == .out, !isPollExceeded { join() }
        }
    }

    private func sync(_ attempt: Int) {
        phase = .syncing
        let identity = identity
        connection.ask(broker: client.coordinatorBroker, losing: model.settings.lostGroupCalls) { [group] reply in
            group.sync(identity) { reply($0) }
        } _: { [weak self] (answer: Result<[ModelPlace], KafkaError>?) in
            guard let self, attempt == joinAttempt, phase == .syncing else { return }
            switch answer {
            case .success(let places): assigned(places)
            case .failure(let error): joinFailed(error)
            case nil: joinLater()
            }
        }
    }

    private func assigned(_ places: [ModelPlace]) {
        let given = places.compactMap { place in
            client.topics.firstIndex(of: place.topic).map { TopicPartition(topic: $0, partition: place.partition) }
        }
        lastContact = model.now()
        if isClosing { return close(holding: given) }
        guard client.isCooperative else { return tell(assign: given) }
        let gone = owned.filter { !given.contains($0) }
        pendingAdded = given.filter { !owned.contains($0) }
        if gone.isEmpty {
            let added = pendingAdded
            pendingAdded = []
            tell(assign: added)
        } else {
            rejoins = true
            tell(revoke: gone)
        }
    }

    /// The end began while the group answered.
    private func close(holding given: [TopicPartition]) {
        if owned.isEmpty { return end() }
        tell(revoke: owned)
    }

    private func tell(assign partitions: [TopicPartition]) {
        phase = .awaitsAssign
        isLost = false
        hasAssignment = true
        owned = client.isCooperative ? (owned + partitions).sorted() : partitions
        client.fetcher.hold()
        client.give(.rebalance(.assign(partitions)))
    }

    private func tell(revoke partitions: [TopicPartition]) {
        phase = .awaitsUnassign
        owned = owned.filter { !partitions.contains($0) }
        if !client.isCooperative || owned.isEmpty { hasAssignment = false }
        client.fetcher.hold()
        client.give(.rebalance(.revoke(partitions)))
    }

    // MARK: - The owner's answers

    func assignCalled() {
        guard phase == .awaitsAssign else { return }
        phase = .steady
        // 2.0.2 ends the state only then.
        goOnAfterAnswer()
    }

    func unassignCalled() {
        isLost = false
        guard phase == .awaitsUnassign || phase == .awaitsAssign else { return }
        phase = .awaitsCommits
        commitEnded()
    }

    /// The next step waits for the answers of all commits.
    func commitEnded() {
        guard phase == .awaitsCommits, client.openCommits == 0 else { return }
        if !pendingAdded.isEmpty, !isClosing {
            let added = pendingAdded
            pendingAdded = []
            return tell(assign: added)
        }
        phase = .steady
        if !client.isCooperative || owned.isEmpty { rejoins = true }
        goOnAfterAnswer()
    }

    private func goOnAfterAnswer() {
        if isClosing { return leaveOrRevoke() }
        guard rejoins else { return }
        rejoins = false
        if isPollExceeded { phase = .out } else { join() }
    }

    // MARK: - Heartbeats

    private func beatLater() {
        client.host.after(options.heartbeatNanos) { [weak self] in
            guard let self, phase != .closed else { return }
            beat()
            beatLater()
        }
    }

    private func beat() {
        if client.fatalError != nil { return }
        guard phase == .steady || isRebalancing else { return }
        if model.now() &- lastPoll > options.maxPollNanos, !isPollExceeded { return pollExceeded() }
        if model.now() &- lastContact > options.sessionNanos, phase == .steady {
            memberID = ""
            return loseAll()
        }
        let identity = identity
        if memberID.isEmpty { return }
        connection.ask(broker: client.coordinatorBroker, losing: model.settings.lostGroupCalls) { [group] reply in
            reply(group.heartbeat(identity))
        } _: { [weak self] (answer: KafkaError??) in
            guard let self, phase != .closed else { return }
            client.noteReached(answer != nil)
            guard let answer else { return }
            if answer == nil || answer == .rebalanceInProgress { lastContact = model.now() }
            if let answer, identity.memberID == memberID, identity.generation == generation { heardOf(answer) }
        }
    }

    private var isRebalancing: Bool {
        phase == .awaitsAssign || phase == .awaitsUnassign || phase == .awaitsCommits
    }

    /// A broker refused the member, in an answer to a heartbeat or a commit.
    func heardOf(_ error: KafkaError) {
        if phase == .closed { return }
        if error == .fenced { return client.fail(error) }
        guard phase == .steady else {
            if error == .unknownMember, isRebalancing { memberID = "" }
            return
        }
        switch error {
        case .rebalanceInProgress: rebalance()
        case .unknownMember:
            memberID = ""
            loseAll()
        case .illegalGeneration: loseAll()
        default: break
        }
    }

    private func rebalance() {
        if client.isCooperative || !hasAssignment { return join() }
        rejoins = true
        tell(revoke: owned)
    }

    /// The group has given the partitions to others.
    private func loseAll() {
        generation = -1
        rejoins = true
        guard hasAssignment, !(client.isCooperative && owned.isEmpty) else { return goOnAfterAnswer() }
        isLost = true
        tell(revoke: owned)
    }

    private func pollExceeded() {
        isPollExceeded = true
        client.give(.failed(.pollExceeded, nil))
        let id = memberID
        memberID = ""
        if options.instanceID == nil { sendLeave(id) }
        if phase == .steady { loseAll() }
    }

    func notePoll() {
        lastPoll = model.now()
        guard isPollExceeded else { return }
        isPollExceeded = false
        if phase == .out { join() }
    }

    // MARK: - The end

    func close() {
        if isClosing { return }
        isClosing = true
        switch phase {
        case .steady: leaveOrRevoke()
        case .out, .joining, .syncing:
            if owned.isEmpty { end() } else { tell(revoke: owned) }
        case .awaitsAssign, .awaitsUnassign, .awaitsCommits, .closed: break
        }
    }

    private func leaveOrRevoke() {
        if hasAssignment, !(client.isCooperative && owned.isEmpty) { tell(revoke: owned) } else { end() }
    }

    private func end() {
        phase = .closed
        joinAttempt += 1
        client.fetcher.stopAll()
        // A static member keeps its place for its session.
        if options.instanceID == nil { sendLeave(memberID) }
        client.signal()
    }

    private func sendLeave(_ id: String) {
        if id.isEmpty { return }
        connection.ask(broker: client.coordinatorBroker) { [group] reply in
            group.leave(id)
            reply(())
        } _: { (_: Void?) in
        }
    }
}

/// The client's options that the model follows.
struct ModelGroupOptions {
    let group: String
    let instanceID: String?
    let strategy: ModelStrategy
    let sessionNanos: UInt64
    let heartbeatNanos: UInt64
    let maxPollNanos: UInt64
    let startsAtOldest: Bool

    init(_ configuration: KafkaConfiguration) {
        let options = configuration.options
        func nanos(_ key: String, _ ms: UInt64) -> UInt64 { (options[key].flatMap { UInt64($0) } ?? ms) * 1_000_000 }
        group = configuration.group
        instanceID = options["group.instance.id"]
        strategy = ModelStrategy(named: options["partition.assignment.strategy"] ?? configuration.assignment.rawValue)
        sessionNanos = nanos("session.timeout.ms", 45_000)
        heartbeatNanos = nanos("heartbeat.interval.ms", 1_000)
        maxPollNanos = nanos("max.poll.interval.ms", 300_000)
        let reset = options["auto.offset.reset"] ?? configuration.offsetReset.rawValue
        startsAtOldest = reset != KafkaConfiguration.OffsetReset.error.rawValue
    }
}
