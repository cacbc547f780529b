// SPDX-License-Identifier: Apache-2.0
internal import EventLoop
internal import Telemetry

/// Maintains the slot map and the links to its nodes.
extension RedisClusterClient {
    /// Ready nodes serve all slots.
    public var isWhole: Bool {
        guard let map = topology.map, map.servedCount == KeySlot.count else { return false }
        return nodes.values.allSatisfy { !$0.isInMap || $0.client.isReady }
    }

    /// Masters in the map.
    var masters: [RedisNode] { (topology.map?.masters ?? []).compactMap { nodes[$0] } }

    // MARK: Asking

    /// Asks a node for the map, now or after a pause.
    func renewMap() {
        guard !isClosed else { return }
        if topology.asked != nil {
            topology.isWantedAgain = true
            return
        }
        guard loop.nowNanos &- topology.askedNanos >= Topology.pauseNanos || topology.askedNanos == 0 else {
            topology.isWantedAgain = true
            return
        }
        let ready = nodes.values.filter { $0.client.isReady }.sorted { $0.address.description < $1.address.description }
        guard !ready.isEmpty else { return openSeeds() }
        topology.turn &+= 1
        let node = ready[topology.turn % ready.count]
        do throws(RedisFault) {
            try node.client.inquire(Topology.inquiry) { command in
                command.arg(word: "CLUSTER")
                command.arg(word: "SLOTS")
            }
        } catch {
            topology.isWantedAgain = true
            return
        }
        topology.asked = node.address
        topology.askedNanos = loop.nowNanos
        topology.isWantedAgain = false
    }

    /// Checks that the map is known and complete and its nodes are connected. If not, asks for it again.
    func watch() {
        watchTimer?.arm(afterNanos: Topology.watchNanos)
        dropIdle()
        let isOld = loop.nowNanos &- topology.askedNanos >= Topology.calmNanos
        if topology.isWantedAgain || isOld || !isWhole { renewMap() }
    }

    // MARK: Answers

    func node(_ node: RedisNode, didAnswer id: UInt64, _ reply: borrowing RedisReply) {
        guard id == Topology.inquiry else { return didCount(id, node, reply.int64) }
        topology.asked = nil
        guard let map = SlotMap(reply, asker: node.address.host) else {
            topology.fault = RedisFault(.protocolViolation, "\(node.address) gives no valid map of the slots")
            topology.isWantedAgain = true
            return
        }
        if let far = map.masters.first(where: { !RedisTopology.allows($0, namedBy: seeds) }) {
            topology.fault = RedisFault(
                .unsupported, "a master is at \(far), and tokens would travel there in clear: use rediss://")
            if topology.map == nil {
                delegate?.redis(node.client, didChange: .waiting(topology.fault ?? RedisFault(.moved)))
            }
            return
        }
        topology.fault = nil
        apply(map)
    }

    func node(_ node: RedisNode, didFail id: UInt64, _ fault: RedisFault) {
        guard id == Topology.inquiry else { return didCount(id, node, nil) }
        topology.asked = nil
        topology.isWantedAgain = true
        topology.fault =
            fault.code == .noPermission
            ? RedisFault(.noPermission, "the user may not ask for the map of the slots: grant it CLUSTER SLOTS") : fault
        if let why = topology.fault, let untold = lines.admit(.noMap, nowNanos: loop.nowNanos) {
            log.warning(
                "a node of the cluster gives no map of the slots",
                [
                    "redis": .string(node.address.description), "why": .string(why.publicText),
                    "suppressed": .int(Int(clamping: untold)),
                ])
        }
        if topology.map == nil { delegate?.redis(node.client, didChange: .waiting(topology.fault ?? fault)) }
    }

    func node(_ node: RedisNode, didChange state: RedisClient.State) {
        if isClosed { return }
        switch state {
        case .ready:
            if topology.map == nil { renewMap() }
            guard node.isInMap else { return }
            noteProcess(of: node)
            delegate?.redis(node.client, didChange: .ready)
            if !held.isEmpty { releaseHeld() }
        case .waiting:
            if topology.asked == node.address { topology.asked = nil }
            renewMap()
            let isHopeless = topology.map == nil && nodes.values.allSatisfy { $0.client.lastFault != nil }
            if node.isInMap || isHopeless { delegate?.redis(node.client, didChange: state) }
        case .idle, .connecting, .closed: break
        }
    }

    /// The node may be a new process. Work begun in the previous process cannot be continued.
    private func noteProcess(of node: RedisNode) {
        guard node.seenGeneration != node.client.serverGeneration else { return }
        if node.seenGeneration != 0 { handovers &+= 1 }
        node.seenGeneration = node.client.serverGeneration
        serverGeneration &+= 1
        let generation = nextGeneration()
        for slot in owners.indices where owners[slot] === node { generations[slot] = generation }
    }

    // MARK: The map

    private func apply(_ map: SlotMap) {
        let isNew = map != topology.map
        topology.map = map
        let masters = Set(map.masters)
        for node in nodes.values { node.isInMap = masters.contains(node.address) }
        var unserved = Set(owners.indices)
        for range in map.ranges {
            let slots = range.slots.map { Int($0) }
            unserved.subtract(slots)
            let node = node(at: range.master)
            node.isInMap = true
            give(range.slots.filter { owners[Int($0)] !== node }, to: node)
        }
        // No node serves them, so their commands continue to wait.
        for slot in unserved { owners[slot] = nil }
        guard isNew else { return }
        if let untold = lines.admit(.map, nowNanos: loop.nowNanos) {
            log.info(
                "the map of the cluster's slots changed",
                [
                    "masters": .string(map.masters.map(\.description).joined(separator: " ")),
                    "slots": .int(map.servedCount), "suppressed": .int(Int(clamping: untold)),
                ])
        }
        // Links that were made before the map named them.
        for node in self.masters where node.client.isReady { self.node(node, didChange: .ready) }
    }

    /// These slots belong to that node from now on. Open commands at the previous node hold them back, so that commands
    /// run and are reported in order.
    func give(_ slots: [UInt16], to node: RedisNode) {
        node.isInMap = true
        var left: [ObjectIdentifier: (node: RedisNode, slots: [UInt16])] = [:]
        var moved = false
        var wereServed = false
        for slot in slots where owners[Int(slot)] !== node {
            moved = true
            wereServed = wereServed || generations[Int(slot)] != 0
            if let before = owners[Int(slot)], before.isBusy {
                left[ObjectIdentifier(before), default: (before, [])].slots.append(slot)
            }
            owners[Int(slot)] = node
        }
        guard moved else { return }
        if wereServed { handovers &+= 1 }
        let generation = nextGeneration()
        for slot in slots { generations[Int(slot)] = generation }
        let byAddress = left.values.sorted { $0.node.address.description < $1.node.address.description }
        for (before, slots) in byAddress {
            for slot in slots { held.fence(slot) }
            before.fence(slots)
        }
        if !held.isEmpty { armHeldTimer() }
    }

    /// Closes links to nodes without slots when all their commands are answered. Possible sources of a map remain until
    /// there is one.
    private func dropIdle() {
        guard topology.map != nil, isReady else { return }
        for node in nodesInOrder where !node.isInMap && !node.isBusy && topology.asked != node.address { drop(node) }
    }
}

extension RedisClusterClient {
    /// Masters that are not ready, and unserved slots; without a map the reason for that.
    var faults: [RedisPlaceFault] {
        let noMap = topology.fault.map { RedisPlaceFault(place: "the cluster's map", fault: $0) }
        guard let map = topology.map else {
            let away = nodes.values.filter { !$0.client.isReady }.map { Self.fault(of: $0) }
            return (away + [noMap].compactMap { $0 }).sorted { $0.place < $1.place }
        }
        var faults = nodes.values.filter { $0.isInMap && !$0.client.isReady }.map { Self.fault(of: $0) }
        faults.sort { $0.place < $1.place }
        if map.servedCount < KeySlot.count {
            faults.append(
                RedisPlaceFault(
                    place: "the cluster",
                    fault: RedisFault(
                        .clusterDown, "\(map.servedCount) of \(KeySlot.count) slots are served by any node")))
        }
        return faults
    }

    /// Masters by address; without a map all nodes that are tried.
    var places: [RedisPlace] {
        let shown = topology.map == nil ? Array(nodes.values) : nodes.values.filter(\.isInMap)
        return shown.map { RedisPlace($0.client, node: $0.address) }.sorted { $0.place < $1.place }
    }

    private static func fault(of node: RedisNode) -> RedisPlaceFault {
        RedisPlaceFault(place: node.client.endpoint.description, fault: node.client.lastFault)
    }
}
