// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import Kafka
import PushCore
import Telemetry

/// Divides large groups: their members go to `carillon.chunks`, so that all workers share one message, and a crash
/// repeats a chunk and not the group.
///
/// The event is settled once the broker has all its chunks. Each chunk is then a record like others.
final class Planner {
    /// Chunks that the broker will never accept: their members are processed here.
    let refused = Tray<(event: EventJob, members: [MemberPage.Member])>()
    private let shard: ShardContext
    private let outbox: Outbox
    private let topic: OutTopic
    private var pending: SlotTable<Pending>

    /// A chunk without the broker's acknowledgement.
    private final class Pending {
        let event: EventJob
        let members: [MemberPage.Member]

        init(_ event: EventJob, _ members: [MemberPage.Member]) {
            self.event = event
            self.members = members
        }
    }

    /// Some megabytes of members.
    private static let pendingMax = 64

    init(_ shard: ShardContext, outbox: Outbox, topic: OutTopic) {
        self.shard = shard
        self.outbox = outbox
        self.topic = topic
        pending = SlotTable(capacity: 1 << 16)
    }

    /// The broker keeps up.
    var hasRoom: Bool { pending.count < Self.pendingMax }

    /// - Returns: whether a group of this size is divided.
    func divides(members count: Int, of event: EventJob) -> Bool {
        guard count > shard.limits.directMax, event.raw.count <= ChunkRecord.rawMax else { return false }
        // Each chunk has the whole event.
        let chunks = max(ChunkPlan.partCount, count / ChunkPlan.membersMax)
        return chunks * event.raw.count <= 2 * event.raw.count + Self.bytesPerMember * count
    }

    /// The chunks of a group together have at most twice the event's bytes and this for each member.
    static let bytesPerMember = 200

    /// Takes the rest of the present page of members.
    func takePage(of event: EventJob, isWanted: (String) -> Bool) {
        while let member = event.audience.pop() {
            guard isWanted(member.uid) else { continue }
            let known = MemberPage.Member(uid: member.uid, level: member.level ?? .unset)
            if let chunk = event.plan?.add(known) { send(chunk, of: event) }
        }
    }

    /// All members were taken.
    func finish(_ event: EventJob) {
        for chunk in event.plan?.takeRest() ?? [] { send(chunk, of: event) }
    }

    private func send(_ chunk: ChunkPlan.Chunk, of event: EventJob) {
        let record = ChunkRecord(
            app: event.app.id, conversation: event.conversationID, part: chunk.part, members: chunk.members,
            source: event.origin?.source ?? EventSource(), raw: event.raw)
        event.plan?.unackedCount += 1
        event.openParts += 1
        shard.metrics.chunks.add()
        let tag = Tag(pending.insert(Pending(event, chunk.members)), .chunk).bits
        outbox.sendRaw(topic, key: Array(record.key.utf8), value: record.bytes, headers: [], tag: tag)
    }

    /// The broker has the chunk. Returns the event, with one open part less.
    func didSettle(_ ref: WorkRef) -> EventJob? {
        guard let chunk = pending.find(ref) else { return nil }
        pending.remove(ref)
        chunk.event.plan?.unackedCount -= 1
        return chunk.event
    }

    /// The broker will never accept the chunk. It counts as open until its members are started here.
    func didGiveUp(_ ref: WorkRef) {
        guard let chunk = pending.find(ref) else { return shard.noteLate() }
        pending.remove(ref)
        refused.append((chunk.event, chunk.members))
        shard.requestTurn()
    }
}
