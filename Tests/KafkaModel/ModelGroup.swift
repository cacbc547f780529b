// SPDX-License-Identifier: Apache-2.0
import Kafka

/// A group at its coordinator: members, generation, assignment and offsets.
///
/// As a broker does: all known members must join before a generation begins, one that is silent for its session is dropped,
/// and a commit must name a member and the present generation. Replies are closures, called once or never.
final class ModelGroup {
    /// What a member sends to join.
    struct Join {
        var memberID: String
        var instanceID: String?
        var topics: [String]
        var strategy: ModelStrategy
        /// What it holds, of a cooperative group.
        var owned: [ModelPlace]
        var sessionNanos: UInt64
        /// How long the group waits for it at a rebalance.
        var rebalanceNanos: UInt64
    }

    /// Who sends a request.
    struct Identity {
        var memberID: String
        var generation: Int
        var instanceID: String?
    }

    struct Joined {
        var memberID: String
        var generation: Int
        var isLeader: Bool
    }

    final class Member {
        let id: String
        var join: Join
        /// Set while it waits for the others.
        var reply: ((Result<Joined, KafkaError>) -> Void)?
        var sync: ((Result<[ModelPlace], KafkaError>) -> Void)?
        var assigned: [ModelPlace] = []
        var expiresNanos: UInt64 = 0
        var isWatched = false

        init(id: String, join: Join) {
            self.id = id
            self.join = join
        }
    }

    private enum Phase {
        case empty
        /// Members join.
        case preparing
        /// Waits for the leader's assignment.
        case completing
        case stable
    }

    let name: String
    private unowned let model: KafkaModel
    /// In the order of their first joining.
    private(set) var members: [Member] = []
    private var phase = Phase.empty
    private(set) var generation = 0
    private var memberCount = 0
    /// Increases with each rebalance, so that an earlier deadline matches nothing.
    private var round = 0
    private var leaderID = ""
    private var offsets: [ModelPlace: (offset: Int64, metadata: [UInt8])] = [:]

    init(_ name: String, _ model: KafkaModel) {
        self.name = name
        self.model = model
    }

    var isStable: Bool { phase == .stable }

    // MARK: - Joining

    func join(_ join: Join, _ reply: @escaping (Result<Joined, KafkaError>) -> Void) {
        let member: Member
        if let id = join.instanceID, let known = members.first(where: { $0.join.instanceID == id }) {
            // A static member that returns without its id gets its place. Whoever has the former id is fenced.
            if !join.memberID.isEmpty, join.memberID != known.id { return reply(.failure(.fenced)) }
            guard let returned = join.memberID.isEmpty ? replace(known, join) : known else { return }
            if join.memberID.isEmpty, phase == .stable, known.join.topics == join.topics {
                watch(returned)
                // Its share stays; the group goes on.
                return reply(.success(Joined(memberID: returned.id, generation: generation, isLeader: false)))
            }
            member = returned
        } else if join.memberID.isEmpty {
            memberCount += 1
            member = Member(id: "member-\(memberCount)", join: join)
            members.append(member)
        } else if let known = members.first(where: { $0.id == join.memberID }) {
            member = known
        } else {
            return reply(.failure(.unknownMember))
        }
        member.join = join
        member.reply?(.failure(.rebalanceInProgress))
        member.reply = reply
        watch(member)
        if phase != .preparing { prepare() }
        completeJoinIfAll()
    }

    /// A new id for the member.
    private func replace(_ known: Member, _ join: Join) -> Member? {
        guard let index = members.firstIndex(where: { $0 === known }) else { return nil }
        memberCount += 1
        let fresh = Member(id: "member-\(memberCount)", join: join)
        fresh.assigned = known.assigned
        members[index] = fresh
        if leaderID == known.id { leaderID = fresh.id }
        return fresh
    }

    private func prepare() {
        for member in members {
            member.sync?(.failure(.rebalanceInProgress))
            member.sync = nil
        }
        let isFirst = phase == .empty
        phase = .preparing
        round += 1
        let round = round
        if isFirst { waitsForMore = true }
        if isFirst {
            model.after(model.settings.firstJoinNanos) { [weak self] in
                guard let self, self.round == round else { return }
                waitsForMore = false
                completeJoinIfAll()
            }
        }
        let patience = members.map(\.join.rebalanceNanos).max() ?? 0
        model.after(patience) { [weak self] in
            guard let self, self.round == round, phase == .preparing else { return }
            // Whoever has not joined is out.
            for member in members where member.reply == nil { drop(member, "did not join in time") }
            waitsForMore = false
            completeJoinIfAll()
        }
    }

    private var waitsForMore = false

    private func completeJoinIfAll() {
        guard phase == .preparing, !waitsForMore, members.allSatisfy({ $0.reply != nil }) else { return }
        guard !members.isEmpty else {
            phase = .empty
            return
        }
        round += 1
        generation += 1
        phase = .completing
        if !members.contains(where: { $0.id == leaderID }) { leaderID = members.first?.id ?? "" }
        model.log?("group \(name): generation \(generation) with \(members.count) members")
        for member in members {
            let reply = member.reply
            member.reply = nil
            watch(member)
            reply?(.success(Joined(memberID: member.id, generation: generation, isLeader: member.id == leaderID)))
        }
    }

    /// The leader's request brings the assignment; the others wait for it.
    func sync(_ identity: Identity, _ reply: @escaping (Result<[ModelPlace], KafkaError>) -> Void) {
        if let refusal = refusal(of: identity) { return reply(.failure(refusal)) }
        guard let member = members.first(where: { $0.id == identity.memberID }) else { return }
        watch(member)
        switch phase {
        case .empty, .preparing: reply(.failure(.rebalanceInProgress))
        case .stable: reply(.success(member.assigned))
        case .completing:
            member.sync = reply
            if identity.memberID == leaderID { share() }
        }
    }

    private func share() {
        phase = .stable
        let strategy = members.first?.join.strategy ?? .range
        let asked = members.map { ModelStrategy.Member(topics: $0.join.topics, owned: $0.join.owned) }
        let shares = strategy.share(asked) { model.partitionCount(of: $0) }
        for (member, share) in zip(members, shares) {
            member.assigned = share
            let reply = member.sync
            member.sync = nil
            reply?(.success(share))
        }
    }

    // MARK: - Staying and leaving

    private func refusal(of identity: Identity) -> KafkaError? {
        if let id = identity.instanceID, let member = members.first(where: { $0.join.instanceID == id }),
            member.id != identity.memberID
        {
            return .fenced
        }
        guard members.contains(where: { $0.id == identity.memberID }) else { return .unknownMember }
        return identity.generation == generation ? nil : .illegalGeneration
    }

    /// The error that a heartbeat hears; nil for none.
    func heartbeat(_ identity: Identity) -> KafkaError? {
        if let refusal = refusal(of: identity) { return refusal }
        for member in members where member.id == identity.memberID { watch(member) }
        return phase == .preparing ? .rebalanceInProgress : nil
    }

    func leave(_ memberID: String) {
        if let member = members.first(where: { $0.id == memberID }) { remove(member, "leaves") }
    }

    /// The member has a whole session again.
    private func watch(_ member: Member) {
        member.expiresNanos = model.now() &+ member.join.sessionNanos
        if member.isWatched { return }
        member.isWatched = true
        expireLater(member)
    }

    private func expireLater(_ member: Member) {
        model.at(member.expiresNanos) { [weak self, weak member] in
            guard let self, let member, members.contains(where: { $0 === member }) else { return }
            let isWaitingForOthers = member.reply != nil || !model.isUp(model.coordinator(of: name))
            if isWaitingForOthers { member.expiresNanos = model.now() &+ member.join.sessionNanos }
            if member.expiresNanos > model.now() { return expireLater(member) }
            remove(member, "was silent for its session")
        }
    }

    private func remove(_ member: Member, _ why: String) {
        drop(member, why)
        if phase == .stable || phase == .completing { prepare() }
        completeJoinIfAll()
    }

    private func drop(_ member: Member, _ why: String) {
        members.removeAll { $0 === member }
        model.log?("group \(name): \(member.id) \(why)")
        member.reply?(.failure(.unknownMember))
        member.sync?(.failure(.unknownMember))
        (member.reply, member.sync) = (nil, nil)
    }

    func forgetMembers() {
        for member in members { drop(member, "is forgotten") }
        phase = .empty
        round += 1
        waitsForMore = false
    }

    /// A coordinator that begins gives each member a whole session.
    func coordinatorReturned() { for member in members { watch(member) } }

    /// A topic has more partitions now, or is new.
    func rebalance() { if phase == .stable || phase == .completing { prepare() } }

    // MARK: - Offsets

    func commit(
        by identity: Identity, _ items: [(place: ModelPlace, offset: Int64, metadata: [UInt8])]
    ) -> [KafkaError?] {
        var refusal = refusal(of: identity)
        // A group without members takes a commit of anybody.
        if members.isEmpty, identity.memberID.isEmpty { refusal = nil }
        if refusal == nil, phase == .completing { refusal = .rebalanceInProgress }
        if refusal == nil { for member in members where member.id == identity.memberID { watch(member) } }
        return items.map { item in
            if let refusal { return refusal }
            if item.metadata.count > model.settings.metadataMax { return .metadataTooLarge }
            offsets[item.place] = (item.offset, item.metadata)
            model.didCommit?(item.place.topic, item.place.partition, item.offset)
            return nil
        }
    }

    func offset(_ topic: String, _ partition: Int32, named name: TopicPartition) -> GroupOffset? {
        offsets[ModelPlace(topic: topic, partition: partition)].map {
            GroupOffset(partition: name, offset: $0.offset, metadata: $0.metadata)
        }
    }

    func setOffset(_ topic: String, _ partition: Int32, _ offset: Int64, _ metadata: [UInt8]) {
        offsets[ModelPlace(topic: topic, partition: partition)] = (offset, metadata)
    }

    func deleteOffsets(of topic: String) { offsets = offsets.filter { $0.key.topic != topic } }
}

extension KafkaError {
    static var unknownMember: KafkaError { KafkaError(code: 25) }
    static var illegalGeneration: KafkaError { KafkaError(code: 22) }
    static var rebalanceInProgress: KafkaError { KafkaError(code: 27) }
    static var fenced: KafkaError { KafkaError(code: 82) }
    static var metadataTooLarge: KafkaError { KafkaError(code: 12) }
    static var transport: KafkaError { KafkaError(code: -195) }
    static var timedOut: KafkaError { KafkaError(code: -185) }
    static var waitsForCoordinator: KafkaError { KafkaError(code: -180) }
    static var pollExceeded: KafkaError { KafkaError(code: -147) }
    static var offsetOutOfRange: KafkaError { KafkaError(code: 1) }
    static var autoOffsetReset: KafkaError { KafkaError(code: -140) }
    static var unknownTopic: KafkaError { KafkaError(code: 3) }
    static var noOffset: KafkaError { KafkaError(code: -168) }
}
