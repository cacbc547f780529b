// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Glibc
import Telemetry

/// Asks the broker for the group's committed offsets without blocking: each query on a separate thread, which ends with
/// the answer.
///
/// librdkafka reads the same offsets at each assignment but does not report them. `ListConsumerGroupOffsets` would need
/// no thread, but in 2.0.2 it ends the process if the coordinator returns after the query's timeout
/// (`rd_kafka_admin_coord_request` releases a reference that `rd_kafka_coord_req_fail` releases again: assertion
/// `eonce->refcnt > 0`).
final class CommittedQuery: @unchecked Sendable {
    private struct Answer {
        /// Nil if the query failed.
        var partitions: NativeList?
        var round: UInt
    }

    private let handle: ClientHandle
    private let answers = Guarded([Answer]())
    /// Maximum time of one query. Set before the first one, on the owner's thread.
    var patienceMs: Int32 = 5000
    /// A refusal is delayed by this time: a coordinator that has moved refuses at once, and would otherwise be asked in
    /// a tight loop.
    private static let refusalMs: Int64 = 1000

    init(_ handle: ClientHandle) { self.handle = handle }

    /// - Parameter round: returned with the answer.
    /// - Returns: false if nothing was asked, so that no answer comes.
    func ask(_ list: UnsafePointer<rd_kafka_topic_partition_list_t>, round: UInt) -> Bool {
        guard list.pointee.cnt > 0, let question = NativeList(copying: list) else { return false }
        let patienceMs = patienceMs
        return runDetached { [self] in
            let askedMs = monotonicMs()
            let code = question.with { rd_kafka_committed(handle.raw, $0, patienceMs) }
            let isAnswered = code == RD_KAFKA_RESP_ERR_NO_ERROR
            if !isAnswered { usleep(UInt32(clamping: max(0, askedMs + Self.refusalMs - monotonicMs()) * 1000)) }
            answers.withLock { $0.append(Answer(partitions: isAnswered ? question : nil, round: round)) }
            handle.wake.signal()
        }
    }

    /// Passes on the available answers. The list is nil if the query failed.
    func takeAnswers(_ visit: (NativeList?, _ round: UInt) -> Void) {
        let here = answers.withLock { answers in
            defer { answers.removeAll() }
            return answers
        }
        for answer in here { visit(answer.partitions, answer.round) }
    }
}
