// SPDX-License-Identifier: Apache-2.0
/// The link to one cluster node, and the number of answered commands.
///
/// Bound to the cluster's loop. The cluster's client owns it.
final class RedisNode: RedisClientDelegate, RedisInquirer {
    let address: NodeAddress
    /// Equal for the same address in every shard of the process.
    var id: Int64 { Int64(truncatingIfNeeded: address.hashValue) }
    let client: RedisClient
    let metrics: RedisMetrics
    private unowned let cluster: RedisClusterClient
    /// Commands that the node accepted, and those of them that were reported or returned.
    private(set) var sentCount: UInt64 = 0
    private(set) var answeredCount: UInt64 = 0
    /// Slots that moved to other nodes, each with the number of commands sent here before.
    private var fences: [(sentCount: UInt64, slots: [UInt16])] = []
    /// The map names it as the master of some slots.
    var isInMap = false
    /// `RedisClient.serverGeneration` when its slots last got a generation.
    var seenGeneration: UInt32 = 0

    init(_ address: NodeAddress, _ client: RedisClient, _ metrics: RedisMetrics, cluster: RedisClusterClient) {
        self.address = address
        self.client = client
        self.metrics = metrics
        self.cluster = cluster
        client.delegate = self
        client.node = self
        client.inquirer = self
    }

    /// Some commands are not answered yet.
    var isBusy: Bool { sentCount != answeredCount }

    func send(_ call: NodeCall, _ encoded: UnsafeRawBufferPointer, asking: Bool = false) throws(RedisFault) {
        try client.send(call, encoded, asking: asking)
        sentCount &+= 1
    }

    /// These slots moved to another node. `HeldSlots.unfence` is called for each once all commands sent here are
    /// answered.
    func fence(_ slots: [UInt16]) { fences.append((sentCount, slots)) }

    /// Slots with all commands answered here.
    func takeUnfenced() -> [UInt16] {
        var slots: [UInt16] = []
        while let first = fences.first, first.sentCount <= answeredCount {
            slots += first.slots
            fences.removeFirst()
        }
        return slots
    }

    /// The node did not execute a command.
    func didTurnAway(_ command: KeptCommand, _ fault: RedisFault, _ bytes: UnsafeRawBufferPointer) {
        answeredCount &+= 1
        metrics.countRedirect(fault.code)
        cluster.take(command, turnedAwayBy: self, fault, Redirect(errorReply: bytes, asker: address.host))
    }

    // MARK: Events of the client

    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply) {
        answeredCount &+= 1
        cluster.delegate?.redis(client, didReply: tag, reply: reply)
    }

    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault) {
        answeredCount &+= 1
        cluster.delegate?.redis(client, didFail: tag, fault: fault)
    }

    func redisDidDeliverReplies(_ client: RedisClient) {
        if !fences.isEmpty { cluster.unfence(self) }
        cluster.delegate?.redisDidDeliverReplies(client)
    }

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        if !fences.isEmpty { cluster.unfence(self) }
        cluster.node(self, didChange: state)
    }

    func didAnswer(_ id: UInt64, _ reply: borrowing RedisReply) { cluster.node(self, didAnswer: id, reply) }

    func didFail(_ id: UInt64, _ fault: RedisFault) { cluster.node(self, didFail: id, fault) }
}
