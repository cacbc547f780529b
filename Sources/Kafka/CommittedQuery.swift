import CRdkafka
import Glibc
import Telemetry

/// Asks the broker what the group has committed, without blocking: each question on a thread of its own, which ends with the
/// answer.
///
/// librdkafka reads the same offsets at each assignment, but tells them to nobody. `ListConsumerGroupOffsets` would need no
/// thread; in 2.0.2 it ends the process where the coordinator comes back after the question's time is over
/// (`rd_kafka_admin_coord_request` gives up a reference that `rd_kafka_coord_req_fail` then gives up again: assertion
/// `eonce->refcnt > 0`).
final class CommittedQuery: @unchecked Sendable {
    /// A list of its own, freed with it.
    private final class Partitions: @unchecked Sendable {
        let raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
        init(_ raw: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>) { self.raw = raw }
        deinit { rd_kafka_topic_partition_list_destroy(raw) }
    }

    private struct Answer {
        /// Nil where the question failed.
        var partitions: Partitions?
        var round: UInt
    }

    private let handle: ClientHandle
    private let answers = Guarded([Answer]())
    /// How long one question may take; set before the first, on the owner's thread.
    var patienceMs: Int32 = 5000
    /// A refusal comes no sooner: a coordinator that has moved refuses at once, and would be asked again and again.
    private static let refusalMs: Int64 = 1000

    init(_ handle: ClientHandle) { self.handle = handle }

    /// - Parameter round: comes back with the answer.
    /// - Returns: false where nothing was asked, so that no answer comes.
    func ask(_ list: UnsafePointer<rd_kafka_topic_partition_list_t>, round: UInt) -> Bool {
        guard list.pointee.cnt > 0, let copy = rd_kafka_topic_partition_list_copy(list) else { return false }
        let question = Partitions(copy)
        let patienceMs = patienceMs
        return runDetached { [self] in
            let askedMs = monotonicMs()
            let code = rd_kafka_committed(handle.raw, question.raw, patienceMs)
            let isAnswered = code == RD_KAFKA_RESP_ERR_NO_ERROR
            if !isAnswered { usleep(UInt32(clamping: max(0, askedMs + Self.refusalMs - monotonicMs()) * 1000)) }
            answers.withLock { $0.append(Answer(partitions: isAnswered ? question : nil, round: round)) }
            handle.wake.signal()
        }
    }

    /// Hands over the answers that are here; the list is valid during the call, and nil where the question failed.
    func takeAnswers(_ visit: (UnsafePointer<rd_kafka_topic_partition_list_t>?, _ round: UInt) -> Void) {
        let here = answers.withLock { answers in
            defer { answers.removeAll() }
            return answers
        }
        for answer in here {
            visit(answer.partitions.map { UnsafePointer($0.raw) }, answer.round)
            withExtendedLifetime(answer) {}
        }
    }
}
