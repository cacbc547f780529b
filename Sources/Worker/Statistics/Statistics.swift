// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// The numbers of `carillon stats`, as one shard collects them (docs/decisions/statistics.md).
///
/// The outcomes of a record are counted when the record is settled, for its partition. A flush writes the counts of all
/// partitions together with their positions, in one step of Redis; offsets are committed up to these positions only. So
/// a crash adds nothing twice, and nothing that is committed is missing. Without Redis offsets are committed all the
/// same, and the counts wait in memory. Loop-bound.
final class Statistics {
    private let store: StateStore
    private let days: Int
    /// Names this shard in this run of the process. A flush of an earlier owner of a partition is refused.
    private let owner: String
    /// Outcomes that are committed and will never be counted.
    private let lost: Counter
    private var subjects = SubjectTable()
    /// The credential sets, by their number in a `CountedOutcome` less one.
    private var credentials: [String] = []
    private var open = CountTable()
    private var sent = CountTable()
    private var flush: StatisticsFlush?
    /// The flush is with Redis.
    private var isAwaited = false
    private var number: UInt64 = 0
    /// When the counts of the flush were collected, Unix ms.
    private var collectedMs: Int64 = 0
    private var places: [CountedPlace: Place] = [:]
    /// A place has records that an earlier owner counted and did not commit.
    private var hasEarlier = false
    /// Redis is asked for the positions of these partitions, in this order; empty: no question is outstanding.
    private var asked: [CountedPlace] = []
    /// When the first flush or question without an answer was made, monotonic; nil: all are answered.
    private var waitingNanos: UInt64?
    /// Redis never runs the scripts, for example by its access rules: nothing is counted.
    private(set) var isOff = false

    private struct Place {
        enum Standing: Equatable {
            /// Its position is asked for next.
            case new
            /// This shard counts it.
            case begun
            /// Redis said that another worker counts it. At that time, monotonic, the group has taken it from this worker, or it is
            /// asked for again.
            case foreign(untilNanos: UInt64)
        }

        let partition: TopicPartition
        /// In Redis.
        let field: String
        var standing = Standing.new
        /// Its position in Redis, as this shard wrote or read it last; nil: not known.
        var position: String?
        /// Records that an earlier owner counted; nil once all of them are settled here.
        var earlier: CountedPosition?
        /// The progress that may be committed while newer counts are not in Redis.
        var written: PartitionOffset?
        /// The progress at the flush that is with Redis, and the position in it.
        var awaited: (progress: PartitionOffset, position: String)?

        var isForeign: Bool { if case .foreign = standing { true } else { false } }

        /// The position with the counts up to this progress. It keeps the records that the earlier owner counted.
        func position(at progress: PartitionOffset, newestMs: Int64?) -> CountedPosition {
            let position = CountedPosition(progress, newestMs: newestMs)
            return earlier.map(position.union) ?? position
        }
    }

    /// Offsets are committed without the statistics if Redis has not answered for so long.
    private static let patienceNanos: UInt64 = 900_000_000
    /// A worker learns in this time that the group has given its partitions to another one.
    private let strangerNanos: UInt64

    init(store: StateStore, days: Int, owner: String, sessionMs: Int64, lost: Counter) {
        self.store = store
        self.lost = lost
        self.days = days
        self.owner = owner
        strangerNanos = UInt64(clamping: sessionMs &+ 15_000) &* 1_000_000
    }

    // MARK: Outcomes

    /// An event of the work table: its outcomes will count.
    func begin(_ event: EventJob) {
        if event.digest != nil { return begin(event, name: "digest", task: nil) }
        guard let message = event.message else { return begin(event, name: "live_activity", task: nil) }
        message.read { begin(event, name: $0.push.template?.id ?? $0.typeName ?? "", task: $0.push.taskID) }
    }

    private func begin(_ event: EventJob, name: String, task: String?) {
        event.counted = RecordCounts(subject: subject(of: event.app, name: name, task: task))
    }

    func subject(of app: AppContext, name: String, task: String?) -> CountedSubject {
        subjects.subject(of: app, name: name, task: task)
    }

    /// The same by the hashes of a mark.
    func subject(of app: AppContext, _ counts: MarkCounts) -> CountedSubject { subjects.subject(of: app, counts) }

    /// The number of a credential set: 0 for none.
    func number(ofCredential name: String?) -> UInt8 {
        guard let name else { return 0 }
        if let index = credentials.firstIndex(of: name) { return UInt8(index + 1) }
        guard credentials.count < 255 else { return 0 }
        credentials.append(name)
        return UInt8(credentials.count)
    }

    /// The number of a credential set of the app, as marks name it (`MarkCounts.short`): 0 for none.
    func number(ofCredential short: UInt8, of app: AppContext) -> UInt8 {
        short == 0 ? 0 : number(ofCredential: app.clients.first { $0.short == short }?.credential)
    }

    /// A record is settled: its outcomes count.
    func settled(_ counted: borrowing RecordCounts, at place: CountedPlace) {
        guard !isOff, let subject = counted.subject else { return }
        counted.tally.forEach { outcome, count in
            if open.isFull { lost.add(UInt64(count)) } else { open.add(UInt64(count), outcome, subject, place) }
        }
    }

    // MARK: Partitions

    /// - Returns: whether the positions of the partitions are asked for: their records wait until `hasBegun`.
    func begin(_ partitions: [(place: CountedPlace, partition: TopicPartition, topic: String)]) -> Bool {
        for (place, partition, topic) in partitions {
            places[place] = Place(partition: partition, field: "\(topic):\(partition.partition)")
        }
        return !isOff && !partitions.isEmpty
    }

    /// Drops the counts and the position of a partition: they belong to the next owner or to the earlier epoch.
    func end(_ place: CountedPlace, nowNanos: UInt64) {
        // Otherwise nothing of them is committed, and the next owner counts them.
        if isHeldUp(nowNanos) { lost.add(open.count(of: place) &+ sent.count(of: place)) }
        forgetCounts(of: place)
        places[place] = nil
        lookForEarlier()
    }

    private func forgetCounts(of place: CountedPlace) {
        open.drop(place)
        guard sent.places.contains(place) else { return }
        sent.drop(place)
        // Without it, whether the flush that is with Redis arrives or is sent again.
        flush = sent.isEmpty ? nil : makeFlush()
    }

    /// The partition began again at a lower offset: earlier positions say nothing about it.
    func restarted(_ place: CountedPlace) {
        lost.add(open.count(of: place) &+ sent.count(of: place))
        forgetCounts(of: place)
        places[place]?.earlier = nil
        places[place]?.written = nil
        places[place]?.awaited = nil
        lookForEarlier()
    }

    /// - Returns: whether an earlier owner counted the record.
    func isCounted(_ place: CountedPlace, offset: Int64, timeMs: Int64?) -> Bool {
        guard hasEarlier, let earlier = places[place]?.earlier, earlier.contains(offset) else { return false }
        if !earlier.isOlder(than: timeMs) { return true }
        // The position is about an earlier epoch of the partition.
        places[place]?.earlier = nil
        lookForEarlier()
        return false
    }

    private func lookForEarlier() { hasEarlier = places.values.contains { $0.earlier != nil } }

    /// The progress that may be committed: its counts are in Redis.
    func committable(_ place: CountedPlace, _ live: PartitionOffset?, nowNanos: UInt64) -> PartitionOffset? {
        // Redis refused the counts of these records. The other worker reads and counts them.
        if isForeign(place), !isHeldUp(nowNanos) { return places[place]?.written }
        guard hasUnwritten(place), !isHeldUp(nowNanos) else {
            // An offset never goes back to the position of the last flush.
            places[place]?.written = live
            return live
        }
        return places[place]?.written
    }

    /// Partitions that another worker counts, although the group gave them to this one: their offsets are not committed.
    var foreignCount: Int { places.values.count(where: \.isForeign) }

    private func isForeign(_ place: CountedPlace) -> Bool { places[place]?.isForeign ?? false }

    func hasUnwritten(_ place: CountedPlace) -> Bool {
        (open.places.contains(place) || sent.places.contains(place)) && !isForeign(place)
    }

    var hasUnwritten: Bool { open.places.contains(where: hasUnwritten) || sent.places.contains(where: hasUnwritten) }

    /// The rows of counts that Redis does not have. 0 if it never takes them.
    var openCounts: Int { isOff ? 0 : open.count + sent.count }

    /// Redis does not answer: nothing waits for it.
    func isHeldUp(_ nowNanos: UInt64) -> Bool {
        isOff || waitingNanos.map { nowNanos &- $0 > Self.patienceNanos } ?? false
    }

    /// Some partitions' positions are asked for, and their answer may still come in time.
    func isBeginning(_ nowNanos: UInt64) -> Bool {
        guard !isOff, places.values.contains(where: { $0.standing == .new }) else { return false }
        return waitingNanos.map { nowNanos &- $0 < Self.patienceNanos } ?? true
    }

    // MARK: Flushes

    /// Asks for positions, or writes the counts. Once a second, when partitions come, and at the end.
    ///
    /// - Parameters:
    ///   - writes: false: only asks.
    ///   - progress: of a partition: the settled records, and the newest time that was read.
    func writeOrAsk(
        nowMs: Int64, nowNanos: UInt64, writes: Bool,
        _ progress: (CountedPlace, TopicPartition) -> (PartitionOffset?, Int64?)
    ) {
        guard !isOff, store.client.isReady else { return noteWaiting(nowNanos, isAway: true) }
        if isAwaited || !asked.isEmpty { return noteWaiting(nowNanos) }
        for (place, known) in places {
            if case .foreign(let untilNanos) = known.standing, untilNanos <= nowNanos { places[place]?.standing = .new }
        }
        let new = places.filter { $0.value.standing == .new }.sorted { $0.value.field < $1.value.field }
        if !new.isEmpty {
            asked = new.map(\.key)
            noteWaiting(nowNanos)
            do throws(RedisFault) {
                try store.beginCounting(owner: owner, new.map(\.value.field), tag: Tag(.none, .beginCounting).bits)
            } catch {
                didFail(error)
            }
            return
        }
        if flush == nil {
            guard writes, !open.isEmpty else { return noteWaiting(nowNanos) }
            swap(&open, &sent)
            collect(nowMs: nowMs, progress)
        }
        noteWaiting(nowNanos)
        send(nowMs: nowMs)
    }

    private func noteWaiting(_ nowNanos: UInt64, isAway: Bool = false) {
        let isAsking = !asked.isEmpty || places.values.contains { $0.standing == .new }
        let waits = isAsking || flush != nil || isAway && !open.isEmpty
        if waits { waitingNanos = waitingNanos ?? nowNanos } else { waitingNanos = nil }
    }

    private func collect(nowMs: Int64, _ progress: (CountedPlace, TopicPartition) -> (PartitionOffset?, Int64?)) {
        for place in sent.places where place != .none {
            if isForeign(place) {
                open.take(place, from: &sent)
                continue
            }
            guard let known = places[place], known.standing == .begun,
                case (let live?, let newestMs) = progress(place, known.partition)
            else {
                lost.add(sent.count(of: place))
                sent.drop(place)
                continue
            }
            let position = known.position(at: live, newestMs: newestMs)
            places[place]?.awaited = (live, position.text)
            if position.offset == live.offset, position.settled == live.settled { places[place]?.earlier = nil }
        }
        lookForEarlier()
        number &+= 1
        collectedMs = nowMs
        flush = sent.isEmpty ? nil : makeFlush()
    }

    private func makeFlush() -> StatisticsFlush {
        let positions = sent.places.compactMap { place -> (String, String)? in
            guard let known = places[place], let position = known.awaited?.position else { return nil }
            return (known.field, position)
        }
        return StatisticsFlush(
            sent.rows, number: number, positions: positions.sorted { $0.0 < $1.0 }, days: days, nowMs: collectedMs,
            credentials: credentials)
    }

    private func send(nowMs: Int64) {
        guard let flush else { return }
        isAwaited = true
        do throws(RedisFault) {
            try store.count(flush, owner: owner, nowMs: nowMs, tag: Tag(.none, .count).bits)
        } catch {
            didFail(error)
        }
    }

    // MARK: Answers

    /// The positions of new partitions.
    func didBegin(_ reply: borrowing RedisReply) {
        let answered = asked
        asked = []
        var index = 0
        reply.forEach { position in
            defer { index += 1 }
            guard index < answered.count else { return }
            begin(answered[index], at: position.string ?? "")
        }
        lookForEarlier()
        waitingNanos = nil
    }

    private func begin(_ place: CountedPlace, at position: String) {
        if let known = places[place]?.position, known != position {
            // Another worker counted in between, perhaps the same records.
            lost.add(open.count(of: place))
            open.drop(place)
        }
        places[place]?.standing = .begun
        places[place]?.position = position
        places[place]?.earlier = CountedPosition(position)
    }

    /// - Returns: whether offsets may be committed further.
    func didCount(_ reply: borrowing RedisReply, nowNanos: UInt64) -> Bool {
        isAwaited = false
        waitingNanos = nil
        var going: Set<String> = []
        reply.forEach { if let field = $0.string { going.insert(field) } }
        guard !going.isEmpty else {
            for place in sent.places {
                guard let awaited = places[place]?.awaited else { continue }
                places[place]?.written = awaited.progress
                places[place]?.position = awaited.position
                places[place]?.awaited = nil
            }
            sent.removeAll()
            flush = nil
            return true
        }
        // Another worker counts these partitions already, and the group will say so; or Redis has older data.
        for (place, known) in places where going.contains(known.field) {
            open.take(place, from: &sent)
            places[place]?.awaited = nil
            places[place]?.standing = .foreign(untilNanos: nowNanos &+ strangerNanos)
        }
        flush = sent.isEmpty ? nil : makeFlush()
        return false
    }

    /// The step is sent again; the same flush twice counts once.
    func didFail(_ fault: RedisFault) {
        isAwaited = false
        asked = []
        switch fault.code {
        case .noPermission, .unsupported, .wrongType, .scriptFailed:
            isOff = true
            open.removeAll()
            sent.removeAll()
            flush = nil
            places.removeAll()
        default: break
        }
    }
}
