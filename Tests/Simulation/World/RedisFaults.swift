// SPDX-License-Identifier: Apache-2.0
import RedisModel
import SimulatedFleet
import SimulatedSystem

/// What goes wrong at Redis.
final class RedisFaults {
    private unowned let world: World
    private let redis: RedisFleet
    private let system: SimulatedSystem
    private let story: Story
    /// What makes things right again, by its number.
    private var repairs: [Int: () -> Void] = [:]
    private var repairNumber = 0
    /// How many faults keep the master from workers' writes at present.
    private var hindrances: [ObjectIdentifier: Int] = [:]
    /// Masters with their replicas whose servers change.
    private var changing: Set<ObjectIdentifier> = []
    /// Writes that Redis has answered and lost.
    private(set) var losses: [Loss] = []
    /// When a server refused writes.
    private(set) var refusals: [ClosedRange<UInt64>] = []
    /// Whether the slot of the statistics moved. Meanwhile Redis answers TRYAGAIN, and partitions that go wait only for a second.
    private(set) var movesStatistics = false
    /// When slots moved, until all servers knew it.
    private(set) var slotMoves: [(slots: Set<Int>, nanos: ClosedRange<UInt64>)] = []
    /// When workers may still have read a master that was replaced as planned.
    private(set) var replacedMasters: [ClosedRange<UInt64>] = []
    /// Masters that workers went on using though a majority of the Sentinels named another one.
    private(set) var violations: [Violation] = []
    /// When the Sentinels that hear of it named the present master.
    private var majorityNanos: UInt64?
    /// Whether links and workers are as usual, so that a worker hears of a new master in time.
    private let hearsInTime: Bool
    private static let second: UInt64 = 1_000_000_000
    /// An answer of a Sentinel counts for 5 s (docs/operations.md), and a link ends soon after.
    private static let hearNanos = 7 * second
    /// The Sentinels name a new master after this time at most.
    private static let tellNanos = 2 * second

    init(_ world: World) {
        self.world = world
        redis = world.redis
        system = world.system
        story = world.story
        hearsInTime = world.plan.faults.allSatisfy { ![.pause, .redisLink, .redisSlowness].contains($0) }
    }

    // MARK: Time

    private func later(_ nanos: ClosedRange<UInt64>, _ body: @escaping () -> Void) {
        let number = repairNumber
        repairNumber += 1
        repairs[number] = body
        system.after(nanos: system.number(nanos)) { [weak self] in self?.repairs.removeValue(forKey: number)?() }
    }

    /// What was to happen later happens now.
    func heal() {
        while let number = repairs.keys.min() { repairs.removeValue(forKey: number)?() }
    }

    private func tell(_ text: String) { story.tell("fault: \(text)") }

    // MARK: Servers

    private func someGroup(_ condition: (ReplicationModel) -> Bool = { _ in true }) -> ReplicationModel? {
        let free = redis.groups.filter { !changing.contains(ObjectIdentifier($0)) && condition($0) }
        return free.isEmpty ? nil : free[system.choice(free.count)]
    }

    private func name(_ server: Server) -> String { "Redis \(server.options.port)" }

    private func begin(_ group: ReplicationModel) { changing.insert(ObjectIdentifier(group)) }

    private func end(_ group: ReplicationModel) { changing.remove(ObjectIdentifier(group)) }

    /// Workers cannot write to the master of the group, or only slowly, until this is called with `false`.
    private func hinder(_ group: ReplicationModel, _ isHindered: Bool = true) {
        hindrances[ObjectIdentifier(group), default: 0] += isHindered ? 1 : -1
        world.moves.redisChanged(
            takesWrites: redis.groups.contains { hindrances[ObjectIdentifier($0), default: 0] == 0 }, system.nowNanos)
    }

    private func note(lost keys: [String], since nanos: UInt64) {
        let tags = Set(keys.compactMap { $0.split(separator: "{").dropFirst().first?.split(separator: "}").first })
        guard !tags.isEmpty else { return }
        losses.append(Loss(fromNanos: nanos, toNanos: system.nowNanos, tags: Set(tags.map(String.init))))
        story.tell("Redis has lost writes of \(tags.sorted().joined(separator: ", "))")
    }

    // MARK: Restarts

    func restart() {
        guard let group = someGroup() else { return }
        tell("\(name(group.master)) ends")
        begin(group)
        hinder(group)
        redis.seat(of: group.master)?.close()
        later(Self.second / 10...20 * Self.second) { [self] in start(group, with: group.master.snapshot) }
    }

    private func start(_ group: ReplicationModel, with data: Snapshot) {
        let server = group.master
        group.restartMaster(with: data)
        redis.seat(of: server)?.listen()
        story.tell("\(name(server)) starts with \(data.keyCount) keys")
        end(group)
        guard system.choice(2) == 0 else { return hinder(group, false) }
        server.troubles.isLoading = true
        later(1...3 * Self.second) { [self] in
            server.troubles.isLoading = false
            hinder(group, false)
        }
    }

    /// The data of a master is saved, and some time later it ends and starts with what was saved.
    func olderData() {
        guard let group = someGroup() else { return }
        let (server, saved, savedNanos) = (group.master, group.master.snapshot, system.nowNanos)
        story.tell("\(name(server)) saves its data")
        begin(group)
        later(Self.second...20 * Self.second) { [self] in
            tell("\(name(server)) ends, and will start with the saved data")
            hinder(group)
            redis.seat(of: server)?.close()
            later(Self.second / 10...10 * Self.second) { [self] in
                // Also what gateways wrote meanwhile.
                note(lost: server.snapshot.keys(notAsIn: saved), since: savedNanos)
                start(group, with: saved)
            }
        }
    }

    /// Saves the data of all masters, except where servers change at present. The closure starts them with that data.
    func save() -> () -> Void {
        let savedNanos = system.nowNanos
        let saved = redis.groups.filter { !changing.contains(ObjectIdentifier($0)) }.map {
            (group: $0, data: $0.master.snapshot)
        }
        for one in saved { begin(one.group) }
        return { [self] in
            for (group, data) in saved {
                tell("\(name(group.master)) starts with a backup")
                hinder(group)
                redis.seat(of: group.master)?.close()
                note(lost: group.master.snapshot.keys(notAsIn: data), since: savedNanos)
                start(group, with: data)
            }
        }
    }

    // MARK: Failovers

    func failOver() {
        guard let group = someGroup({ !$0.replicas.isEmpty }) else { return }
        let replica = group.replicas[system.choice(group.replicas.count)]
        begin(group)
        let kind = system.choice(3)
        if kind == 0 { return plannedFailover(of: group, to: replica) }
        group.catchUp()
        redis.lagging.insert(ObjectIdentifier(group))
        let sinceNanos = system.nowNanos
        later(1...Self.second) { [self] in
            if kind == 1 { death(of: group, replica, sinceNanos) } else { split(of: group, replica, sinceNanos) }
        }
    }

    /// As by CLUSTER FAILOVER or SENTINEL FAILOVER with a replica that has all.
    private func plannedFailover(of group: ReplicationModel, to replica: Server) {
        let old = group.master
        tell("\(name(replica)) takes over from \(name(old)) as planned")
        group.catchUp()
        promote(replica, in: group, oldMasterFollows: true)
        // A cluster's replica answers no worker.
        if redis.cluster == nil {
            let nowNanos = system.nowNanos
            replacedMasters.append(nowNanos...(hearsInTime ? nowNanos + Self.tellNanos + Self.hearNanos : .max))
        }
        if system.choice(2) == 0 { redis.seat(of: old)?.server.disconnectAll() }
        end(group)
    }

    /// The master's process ends. What its replica has not received is lost.
    private func death(of group: ReplicationModel, _ replica: Server, _ sinceNanos: UInt64) {
        let old = group.master
        tell("\(name(old)) ends for good")
        hinder(group)
        redis.seat(of: old)?.close()
        later(Self.second...10 * Self.second) { [self] in
            promote(replica, in: group, oldMasterFollows: false)
            hinder(group, false)
            note(lost: old.snapshot.keys(notAsIn: replica.snapshot), since: sinceNanos)
            later(Self.second...20 * Self.second) { [self] in
                old.restart()
                comeBack(old, to: group)
                redis.seat(of: old)?.listen()
            }
        }
    }

    /// The master is cut off from its replicas, and goes on for its clients.
    private func split(of group: ReplicationModel, _ replica: Server, _ sinceNanos: UInt64) {
        let old = group.master
        let isWithSentinel = redis.sentinelCount > 0 && system.choice(2) == 0
        tell("\(name(old)) is cut off\(isWithSentinel ? " with a Sentinel" : ""), and still answers")
        if isWithSentinel { redis.cutOffSentinel = system.choice(redis.sentinelCount) }
        promote(replica, in: group, oldMasterFollows: false)
        later(isWithSentinel ? 3 * Self.second...25 * Self.second : Self.second / 2...8 * Self.second) { [self] in
            if isWithSentinel { endCutOff(of: old) }
            // Its tail, later writes of its clients, and what they did not see of the new master.
            note(lost: old.snapshot.keys(notAsIn: group.master.snapshot), since: sinceNanos)
            comeBack(old, to: group)
            if system.choice(2) == 0 { old.disconnectAll() }
        }
    }

    /// The Sentinel hears of the new master too. The other two named it for some time, and are the majority.
    private func endCutOff(of old: Server) {
        redis.cutOffSentinel = nil
        redis.tellSentinels()
        guard hearsInTime, let lastNanos = redis.seat(of: old)?.receivedNanos, let toldNanos = majorityNanos,
            lastNanos > toldNanos &+ Self.hearNanos
        else { return }
        let late = (lastNanos - toldNanos) / 1_000_000
        violations.append(
            Violation(
                rule: "the master of the majority",
                text: "\(name(old)) is used \(late) ms after two of three Sentinels named another master", message: ""))
    }

    /// Workers write to the new master once they have heard of it.
    private func promote(_ replica: Server, in group: ReplicationModel, oldMasterFollows: Bool) {
        hinder(group)
        redis.lagging.remove(ObjectIdentifier(group))
        if let cluster = redis.cluster {
            let others = cluster.nodes.filter { $0 !== group.master }
            cluster.failOver(
                to: replica, oldMasterFollows: oldMasterFollows, knownTo: others.filter { _ in system.choice(2) == 0 })
            later(1...2 * Self.second) { [self] in
                cluster.spread(to: others)
                hinder(group, false)
            }
        } else {
            group.failOver(to: replica, oldMasterFollows: oldMasterFollows)
            majorityNanos = nil
            later(1...Self.tellNanos) { [self] in
                redis.tellSentinels()
                majorityNanos = system.nowNanos
                hinder(group, false)
            }
        }
        story.tell("\(name(replica)) is the master")
    }

    private func comeBack(_ server: Server, to group: ReplicationModel) {
        if let cluster = redis.cluster { cluster.rejoin(server) } else { group.rejoin(server) }
        story.tell("\(name(server)) is a replica now")
        end(group)
    }

    // MARK: Answers

    func fill() {
        guard let group = someGroup() else { return }
        let server = group.master
        tell("\(name(server)) has no memory left")
        server.setMaxMemory(1)
        let nanos = system.nowNanos
        hinder(group)
        later(Self.second / 10...20 * Self.second) { [self] in
            server.setMaxMemory(0)
            refusals.append(nanos...system.nowNanos)
            hinder(group, false)
            story.tell("\(name(server)) has memory again")
        }
    }

    func refuse() {
        guard let group = someGroup() else { return }
        let server = group.master
        let troubles: [(String, (Server, Bool) -> Void)] = [
            ("loads its data", { $0.troubles.isLoading = $1 }),
            ("runs a long script", { $0.troubles.isBusy = $1 }),
            ("cannot save its data", { $0.troubles.cannotSave = $1 }),
            ("has too few replicas", { $0.setMinReplicas($1 ? 9 : 0) }),
        ]
        let (trouble, set) = troubles[system.choice(troubles.count)]
        tell("\(name(server)) \(trouble)")
        set(server, true)
        let nanos = system.nowNanos
        hinder(group)
        later(Self.second / 10...20 * Self.second) { [self] in
            set(server, false)
            refusals.append(nanos...system.nowNanos)
            hinder(group, false)
            story.tell("\(name(server)) is as usual again")
        }
    }

    func slow() {
        guard let group = someGroup(), let seat = redis.seat(of: group.master) else { return }
        seat.serviceMaxNanos = system.number(10_000_000...3 * Self.second)
        tell("\(name(seat.server)) is slow, up to \(seat.serviceMaxNanos / 1_000_000) ms")
        hinder(group)
        later(Self.second / 10...20 * Self.second) { [self] in
            seat.serviceMaxNanos = RedisSeat.usualServiceNanos
            hinder(group, false)
        }
    }

    // MARK: Slots

    /// Moves some slots that have keys to another master, one key after the other.
    func moveSlots() {
        guard let cluster = redis.cluster, let source = someGroup() else { return }
        begin(source)
        guard let target = someGroup() else { return end(source) }
        begin(target)
        let names = source.master.snapshot.keyNames
        let count = system.choice(6) + 1
        let slots = Set(
            (0..<count).compactMap { _ in
                names.isEmpty ? nil : ClusterModel.slot(of: names[system.choice(names.count)])
            }
        ).sorted()
        tell("slots \(slots) move from \(name(source.master)) to \(name(target.master))")
        for slot in slots { cluster.beginMove(of: slot, to: target.master) }
        if slots.contains(ClusterModel.slot(of: "{n}")) { movesStatistics = true }
        slotMoves.append((Set(slots), system.nowNanos...system.nowNanos))
        move(slots, source, target, number: slotMoves.count - 1)
    }

    private func move(_ slots: [Int], _ source: ReplicationModel, _ target: ReplicationModel, number: Int) {
        guard let cluster = redis.cluster else { return }
        guard let slot = slots.first else {
            end(source)
            return end(target)
        }
        later(1_000_000...Self.second / 2) { [self] in
            let left = cluster.moveKeys(of: slot, count: 1 + system.choice(3))
            if left > 0 { return move(slots, source, target, number: number) }
            cluster.endMove(of: slot, knownTo: cluster.nodes.filter { _ in system.choice(2) == 0 })
            later(1...2 * Self.second) { [self] in
                cluster.spread()
                slotMoves[number].nanos = slotMoves[number].nanos.lowerBound...system.nowNanos
            }
            move(Array(slots.dropFirst()), source, target, number: number)
        }
    }
}
