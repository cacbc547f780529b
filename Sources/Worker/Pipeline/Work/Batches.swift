// SPDX-License-Identifier: Apache-2.0
import Redis

/// Members that Redis is asked about in one call. The one who asks checks at the answer whether a member still waits for it.
final class Batch<Head, Member> {
    let head: Head
    fileprivate(set) var members: [Member] = []

    init(_ head: Head) { self.head = head }

    func append(_ member: Member) { members.append(member) }

    /// Gives each member its element of the reply, behind `skipped` elements.
    ///
    /// - Returns: false if the reply has another number of elements; then nobody has an answer.
    func forEach(in reply: borrowing RedisReply, skipped: Int = 0, _ body: (Member, borrowing RedisReply) -> Void)
        -> Bool
    {
        guard reply.count == members.count + skipped else { return false }
        var next = -skipped
        reply.forEach { element in
            if next >= 0 { body(members[next], element) }
            next += 1
        }
        return true
    }
}

/// One kind of call about several members: the batch that is being gathered, and those that Redis is asked about.
final class Batches<Head, Member> {
    private(set) var open: Batch<Head, Member>?
    private var asked: SlotTable<Batch<Head, Member>>

    /// - Parameter capacity: the most batches that Redis is asked about at a time.
    init(capacity: Int) { asked = SlotTable(capacity: capacity) }

    /// Adds a member to the batch that is being gathered. Returns the number of its members.
    func add(_ member: Member, _ head: @autoclosure () -> Head) -> Int {
        let batch = open ?? Batch(head())
        open = batch
        batch.append(member)
        return batch.members.count
    }

    /// The gathered batch, which is sent now; nil if nothing was gathered.
    func takeOpen() -> Batch<Head, Member>? { open.take() }

    /// Sends one call about a batch.
    ///
    /// - Returns: the fault, if the call cannot be sent.
    func ask(
        _ batch: Batch<Head, Member>, _ question: Question, _ send: (UInt64) throws(RedisFault) -> Void
    ) -> RedisFault? {
        let ref = asked.insert(batch)
        do throws(RedisFault) {
            try send(Tag(ref, question).bits)
            return nil
        } catch {
            asked.remove(ref)
            return error
        }
    }

    func find(_ ref: WorkRef) -> Batch<Head, Member>? { asked.find(ref) }

    /// The batch of an answer, which is the last one about it.
    func answered(_ ref: WorkRef) -> Batch<Head, Member>? {
        defer { asked.remove(ref) }
        return asked.find(ref)
    }
}

/// The consequence of a common call's fault for each member.
enum BatchFault {
    /// One member's key, or the call itself, is at fault: each is asked about alone.
    case askAlone
    /// Redis accepts no writes.
    case refused
    case failed
}

extension ShardContext {
    func meaning(ofBatch fault: RedisFault) -> BatchFault {
        switch fault.scope {
        case .call:
            noteRefusedBatch(fault)
            return .askAlone
        case .key: return .askAlone
        case .writes: return .refused
        case .connection, .server: return .failed
        }
    }
}
