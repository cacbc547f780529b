// SPDX-License-Identifier: Apache-2.0
/// A Redis Cluster of three masters with a third of the slots each, and a replica of each; all on 127.0.0.1.
///
/// It serves all slots when the initialiser returns, and ends with the last reference.
public final class RedisCluster: Sendable {
    /// The initial masters, and then their replicas in the same order.
    public let nodes: [RedisServer]
    /// TLS port of each node; empty without TLS.
    public let tlsPorts: [UInt16]
    private let ids: [String]

    public static let masterCount = 3
    private static let slotCount = 16_384
    public static let patience = Duration.seconds(60)

    /// - Parameters:
    ///   - arguments: added to each node's command line.
    ///   - nodeTimeoutMs: time without an answer after which a node counts as failed.
    ///   - tlsArguments: with certificate and key. Each node then also speaks TLS, and announces the TLS port to TLS
    ///     clients.
    public init(
        arguments: [String] = [], nodeTimeoutMs: Int = 2_000, hasReplicas: Bool = true, tlsArguments: [String] = []
    ) async throws(SetupFault) {
        var nodes: [RedisServer] = []
        var busPorts: [UInt16] = []
        var tlsPorts: [UInt16] = []
        for _ in 0..<(Self.masterCount * (hasReplicas ? 2 : 1)) {
            let busPort = try Ports.free()
            busPorts.append(busPort)
            var more = arguments
            if !tlsArguments.isEmpty {
                let port = try Ports.free()
                tlsPorts.append(port)
                more += ["--tls-port", String(port), "--tls-cluster", "yes", "--tls-replication", "yes"] + tlsArguments
            }
            nodes.append(
                try RedisServer(
                    arguments: [
                        "--cluster-enabled", "yes", "--cluster-port", String(busPort),
                        "--cluster-node-timeout", String(nodeTimeoutMs), "--repl-diskless-sync-delay", "0",
                    ] + more))
        }
        self.nodes = nodes
        self.tlsPorts = tlsPorts
        var ids: [String] = []
        for node in nodes { ids.append(try Self.word(node.command("CLUSTER MYID"))) }
        self.ids = ids
        for (index, node) in nodes.enumerated() {
            _ = try node.command("CLUSTER SET-CONFIG-EPOCH \(index + 1)")
            let port = tlsPorts.isEmpty ? node.port : tlsPorts[index]
            if index > 0 { _ = try nodes[0].command("CLUSTER MEET 127.0.0.1 \(port) \(busPorts[index])") }
        }
        for index in 0..<Self.masterCount {
            let first = Self.slotCount * index / Self.masterCount
            let last = Self.slotCount * (index + 1) / Self.masterCount - 1
            _ = try nodes[index].command("CLUSTER ADDSLOTSRANGE \(first) \(last)")
        }
        try await awaitAll { $0.contains("cluster_state:ok") && $0.contains("cluster_known_nodes:\(nodes.count)") }
        for index in Self.masterCount..<nodes.count {
            _ = try nodes[index].command("CLUSTER REPLICATE \(ids[index - Self.masterCount])")
        }
        for index in Self.masterCount..<nodes.count { try await awaitReplica(index) }
    }

    /// As `redis.url` in a configuration: some of the nodes, which report the others.
    public var urls: String { "[" + nodes.prefix(2).map(\.url).joined(separator: ", ") + "]" }

    /// Ends all nodes.
    public func stop() { for node in nodes { node.stop() } }

    /// Sends an inline command to the node that has its key.
    public func command(_ line: String) throws(SetupFault) -> String {
        for node in nodes where node.isRunning { return try node.command(line) }
        throw SetupFault("no node of the cluster is reachable")
    }

    /// The slot of a key.
    public func slot(of key: String) throws(SetupFault) -> Int {
        guard let slot = Int(try Self.word(command("CLUSTER KEYSLOT \(key)"))) else {
            throw SetupFault("no slot of \(key)")
        }
        return slot
    }

    /// The index in `nodes` of the owner of a slot.
    public func owner(of slot: Int) throws(SetupFault) -> Int {
        for (index, node) in nodes.enumerated() where node.isRunning {
            for line in try node.command("CLUSTER NODES").split(whereSeparator: \.isNewline)
            where line.contains("myself,master") {
                for range in line.split(separator: " ").dropFirst(8) where !range.hasPrefix("[") {
                    let ends = range.split(separator: "-").compactMap { Int($0) }
                    if let first = ends.first, let last = ends.last, (first...last).contains(slot) { return index }
                }
            }
        }
        throw SetupFault("no node serves slot \(slot)")
    }

    // MARK: Moving a slot

    /// Begins to move a slot: its keys move one by one from now on (CLUSTER SETSLOT IMPORTING, MIGRATING).
    public func beginMove(of slot: Int, to target: Int) throws(SetupFault) {
        let source = try owner(of: slot)
        _ = try nodes[target].command("CLUSTER SETSLOT \(slot) IMPORTING \(ids[source])")
        _ = try nodes[source].command("CLUSTER SETSLOT \(slot) MIGRATING \(ids[target])")
    }

    /// Moves up to `count` keys of the slot (MIGRATE). Returns the number of keys that were left before the call.
    @discardableResult
    public func moveKeys(of slot: Int, to target: Int, count: Int = 100) throws(SetupFault) -> Int {
        let source = nodes[try owner(of: slot)]
        let keys = try source.command("CLUSTER GETKEYSINSLOT \(slot) \(count)")
            .split(whereSeparator: \.isNewline).filter { $0.first != "$" && $0.first != "*" }
        guard !keys.isEmpty else { return 0 }
        let quoted = keys.map { "\"\($0)\"" }.joined(separator: " ")
        let answer = try source.command("MIGRATE 127.0.0.1 \(nodes[target].port) \"\" 0 5000 KEYS \(quoted)")
        guard !answer.hasPrefix("-") else { throw SetupFault("MIGRATE: \(answer)") }
        return keys.count
    }

    /// Ends the move. The new owner learns it first, then the old one, then the other masters.
    public func endMove(of slot: Int, to target: Int) throws(SetupFault) {
        let source = try owner(of: slot)
        for index in [target, source] + (0..<nodes.count).filter({ $0 != target && $0 != source })
        where nodes[index].isRunning {
            _ = try nodes[index].command("CLUSTER SETSLOT \(slot) NODE \(ids[target])")
        }
    }

    // MARK: Failing over

    /// A replica takes over the slots of its running master (CLUSTER FAILOVER).
    public func failOver(to replica: Int) async throws(SetupFault) {
        // A busy machine may miss the server's five-second limit for a takeover. The takeover then has no effect.
        for _ in 0..<5 {
            let answer = try nodes[replica].command("CLUSTER FAILOVER")
            guard answer.hasPrefix("+OK") else { throw SetupFault("CLUSTER FAILOVER: \(answer)") }
            do throws(SetupFault) { return try await awaitMaster(replica, for: .seconds(8)) } catch { continue }
        }
        throw SetupFault("node \(replica) did not take over")
    }

    /// Waits until a node is a master.
    public func awaitMaster(_ index: Int, for patience: Duration = patience) async throws(SetupFault) {
        try await Self.wait("node \(index) did not become a master", for: patience) { () throws(SetupFault) in
            try nodes[index].command("ROLE").contains("master")
        }
    }

    /// Waits until a replica has all data of its master.
    public func awaitReplica(_ index: Int) async throws(SetupFault) {
        try await Self.wait("node \(index) did not become a replica") { () throws(SetupFault) in
            try nodes[index].command("INFO replication").contains("master_link_status:up")
        }
    }

    private func awaitAll(_ holds: (String) -> Bool) async throws(SetupFault) {
        try await Self.wait("the nodes did not become a cluster") { () throws(SetupFault) in
            for node in nodes where !holds(try node.command("CLUSTER INFO")) { return false }
            return true
        }
    }

    private static func wait(
        _ why: String, for patience: Duration = patience, _ holds: () throws(SetupFault) -> Bool
    ) async throws(SetupFault) {
        let clock = ContinuousClock()
        let deadline = clock.now + patience
        while clock.now < deadline {
            if try holds() { return }
            do { try await Task.sleep(for: .milliseconds(20), tolerance: .zero) } catch {
                throw SetupFault("cancelled")
            }
        }
        throw SetupFault(why)
    }

    /// The text of a bulk string or an integer.
    private static func word(_ answer: String) throws(SetupFault) -> String {
        guard let line = answer.split(whereSeparator: \.isNewline).last, !answer.hasPrefix("-") else {
            throw SetupFault("no answer: \(answer)")
        }
        return line.first == ":" ? String(line.dropFirst()) : String(line)
    }
}
