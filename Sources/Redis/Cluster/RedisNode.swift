/// The link to one node of a cluster, and how far the node has answered.
///
/// Bound to the cluster's loop; the cluster's client owns it.
final class RedisNode: RedisClientDelegate, RedisInquirer {
    let address: NodeAddress
    /// The same for the same address, in every shard of the process.
    var id: Int64 { Int64(truncatingIfNeeded: address.hashValue) }
    let client: RedisClient
    let metrics: RedisMetrics
    private unowned let cluster: RedisClusterClient
    /// Commands that the node took, and of those the ones that are told or came back.
    private(set) var sentCount: UInt64 = 0
    private(set) var answeredCount: UInt64 = 0
    /// Slots that went to other nodes when so many commands had been sent here.
    private var fences: [(sentCount: UInt64, slots: [UInt16])] = []
    /// The map names it as the master of some slots.
    var isInMap = false
    /// `RedisClient.serverGeneration` when its slots were last given a generation.
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

    /// Commands that are not answered yet.
    var isBusy: Bool { sentCount != answeredCount }

    func send(_ call: NodeCall, _ encoded: UnsafeRawBufferPointer, asking: Bool = false) throws(RedisFault) {
        try client.send(call, encoded, asking: asking)
        sentCount &+= 1
    }

    /// These slots are another's now; `HeldSlots.unfence` is called for each once all that was sent here is answered.
    func fence(_ slots: [UInt16]) { fences.append((sentCount, slots)) }

    /// Slots whose commands are all answered here.
    func takeUnfenced() -> [UInt16] {
        var slots: [UInt16] = []
        while let first = fences.first, first.sentCount <= answeredCount {
            slots += first.slots
            fences.removeFirst()
        }
        return slots
    }

    /// A command came back unexecuted.
    func didTurnAway(_ command: KeptCommand, _ fault: RedisFault, _ bytes: UnsafeRawBufferPointer) {
        answeredCount &+= 1
        metrics.countRedirect(fault.code)
        cluster.take(command, turnedAwayBy: self, fault, Redirect(errorReply: bytes, asker: address.host))
    }

    // MARK: What the client tells

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
