import CRdkafka

/// Asks the broker what a group has committed, without blocking: the answers come through a queue of its own.
///
/// One thread. librdkafka reads the same offsets at each assignment, but tells them to nobody.
final class CommittedQuery {
    private let handle: ClientHandle
    private let group: String
    private let queue: OpaquePointer
    /// Questions without an answer yet.
    private var openCount = 0

    init(_ handle: ClientHandle, group: String) throws(KafkaFault) {
        guard let queue = rd_kafka_queue_new(handle.raw) else { throw .creation("no queue for answers") }
        self.handle = handle
        self.group = group
        self.queue = queue
        handle.wake.attach(to: queue)
    }

    deinit {
        WakeFD.detach(from: queue)
        rd_kafka_queue_destroy(queue)
    }

    /// How long one question may take.
    private static let patienceMs: Int32 = 5000

    /// - Parameter round: comes back with the answer.
    /// - Returns: false where nothing was asked, so that no answer comes.
    func ask(_ list: UnsafePointer<rd_kafka_topic_partition_list_t>, round: UInt) -> Bool {
        guard list.pointee.cnt > 0 else { return false }
        var question = rd_kafka_ListConsumerGroupOffsets_new(group, list)
        guard question != nil else { return false }
        defer { rd_kafka_ListConsumerGroupOffsets_destroy(question) }
        let options = rd_kafka_AdminOptions_new(handle.raw, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS)
        defer { if let options { rd_kafka_AdminOptions_destroy(options) } }
        if let options {
            rd_kafka_AdminOptions_set_opaque(options, UnsafeMutableRawPointer(bitPattern: round))
            rd_kafka_AdminOptions_set_request_timeout(options, Self.patienceMs, nil, 0)
        }
        rd_kafka_ListConsumerGroupOffsets(handle.raw, &question, 1, options, queue)
        openCount += 1
        return true
    }

    /// Hands over the answers that are here; the list is valid during the call, and nil where the question failed.
    func takeAnswers(_ visit: (UnsafePointer<rd_kafka_topic_partition_list_t>?, _ round: UInt) -> Void) {
        while openCount > 0, let event = rd_kafka_queue_poll(queue, 0) {
            defer { rd_kafka_event_destroy(event) }
            guard let result = rd_kafka_event_ListConsumerGroupOffsets_result(event) else { continue }
            openCount -= 1
            let round = UInt(bitPattern: rd_kafka_event_opaque(event))
            var count = 0
            guard rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR,
                let groups = rd_kafka_ListConsumerGroupOffsets_result_groups(result, &count), count > 0,
                let group = groups[0], rd_kafka_group_result_error(group) == nil,
                let list = rd_kafka_group_result_partitions(group)
            else {
                visit(nil, round)
                continue
            }
            visit(list, round)
        }
    }
}
