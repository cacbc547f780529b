// SPDX-License-Identifier: Apache-2.0
public import JSON
internal import PushCore

/// Compares written events with their results by the rules of `docs/chaos.md`: every recipient gets one final outcome
/// per device, and nothing is accepted twice.
///
/// Receives each written event and each record of `push.results`. It keeps about 60 bytes per recipient and no texts,
/// for at most `recipientsMax` recipients; further recipients are counted but not judged. Pure.
public struct ReplayJudge {
    /// A written event, as the worker will read it.
    public struct Event: Sendable {
        public var app: String
        public var id: String
        /// Empty for a Live Activity without one.
        public var msgID: String
        /// Nil if only Redis knows the recipients: members of a group, or all users who bound an activity.
        public var recipients: [String]?

        public init(app: String, id: String, msgID: String, recipients: [String]?) {
            self.app = app
            self.id = id
            self.msgID = msgID
            self.recipients = recipients
        }
    }

    public static let recipientsMax = 4_000_000
    private static let reasonsMax = 200
    private static let lanesMax = 16

    private struct Written {
        var atMs: Int64
        var hasMessage: Bool
        /// The event names its recipients.
        var isNamed: Bool
        var expected = 0
        /// A final record without a user: the event ended before its members were read.
        var hasEnded = false
    }

    private struct Person {
        var isExpected = false
        /// Final records seen: one for the user without a device, one for a device.
        var hasOwn = false
        var hasDevice = false
        var isContradicted = false

        var hasOutcome: Bool { hasOwn || hasDevice }
    }

    private let seeds: (UInt64, UInt64)
    private var events: [UInt64: Written] = [:]
    private var people: [UInt64: Person] = [:]
    /// The first final record of each device (or user).
    private var verdicts: [UInt64: UInt64] = [:]
    private var acceptedPids: Set<UInt64> = []

    /// Recipients named by the written events, each counted once.
    public private(set) var expected = 0
    /// Recipients of an event that was written before; the worker writes nothing for them.
    public private(set) var repeatedInFile = 0
    /// Events with recipients that only Redis knows.
    public private(set) var openAudiences = 0
    /// Recipients beyond `recipientsMax`, which are not judged.
    public private(set) var unjudged = 0
    /// Final records of written events, by verdict and reason.
    public private(set) var outcomes: [String: Int] = [:]
    /// Records of events that this replay did not write.
    public private(set) var foreign = 0
    /// Records that cannot be read.
    public private(set) var unreadable = 0
    /// Accepted pushes with a pid that was accepted before.
    public private(set) var duplicates = 0
    /// Recipients with two different verdicts for one device.
    public private(set) var contradictions = 0
    /// Users with a record of an event that does not name them.
    public private(set) var uninvited = 0
    /// Expected recipients that have an outcome.
    public private(set) var answered = 0
    /// Expected recipients of events that ended before their members were read.
    public private(set) var endedWhole = 0
    /// Expected recipients without any record so far.
    public var silent: Int { max(0, expected - answered - endedWhole) }
    /// From writing the event to the time of its record.
    public private(set) var fromWriting = LatencySpread()
    /// The latency that the records state: from the device's turn to APNs' answer.
    public private(set) var inWorker = LatencySpread()
    /// `fromWriting` by lane, for records that name one.
    public private(set) var lanes: [String: LatencySpread] = [:]

    /// - Parameter seeds: must be unpredictable, because ids come from outside.
    public init(seeds: (UInt64, UInt64)) {
        self.seeds = seeds
    }

    // MARK: Written records

    public mutating func wrote(_ event: Event, atMs: Int64) {
        let key = hash(event.app, event.id)
        let isNew = events[key] == nil
        if isNew {
            guard events.count < Self.recipientsMax else {
                unjudged += event.recipients?.count ?? 0
                return
            }
            events[key] = Written(
                atMs: atMs, hasMessage: !event.msgID.isEmpty, isNamed: event.recipients != nil)
            if event.recipients == nil { openAudiences += 1 }
        }
        for uid in event.recipients ?? [] {
            let person = hash(event.app, event.id, uid)
            if people[person]?.isExpected == true {
                if !isNew { repeatedInFile += 1 }
                continue
            }
            guard people.count < Self.recipientsMax else {
                unjudged += 1
                continue
            }
            people[person, default: Person()].isExpected = true
            events[key]?.expected += 1
            expected += 1
        }
    }

    // MARK: Results

    /// A record of `push.results`.
    public mutating func read(_ record: JSONCursor) {
        guard let app = record["app"]?.string, let id = record["event_id"]?.string, let uid = record["uid"]?.string,
            let verdict = record["verdict"], let word = verdict.string
        else {
            unreadable += 1
            return
        }
        let key = hash(app, id)
        guard let event = events[key] else {
            foreign += 1
            return
        }
        // A badge-only push belongs to no message, whatever event it names.
        let isBadgeAlone = event.hasMessage && (record["msg_id"]?.utf8?.isEmpty ?? true)
        if isBadgeAlone || verdict.isString("parked") { return }
        let isAccepted = verdict.isString("accepted")
        count(record, word, isAccepted, since: event.atMs)
        let pid = record["pid"]?.string ?? ""
        if isAccepted, !pid.isEmpty, !acceptedPids.insert(hash(app, pid)).inserted { duplicates += 1 }
        if uid.isEmpty {
            if !event.hasEnded { endedWhole += event.expected }
            events[key]?.hasEnded = true
            return
        }
        let device = record["device"]?.string
        note(
            hash(app, id, uid), place: hash(app, id, uid, device ?? ""), isDevice: device != nil, hash(word, pid),
            isNamed: event.isNamed)
    }

    private mutating func note(_ key: UInt64, place: UInt64, isDevice: Bool, _ said: UInt64, isNamed: Bool) {
        var person = people[key] ?? Person()
        if !person.hasOutcome {
            if person.isExpected { answered += 1 } else if isNamed, unjudged == 0 { uninvited += 1 }
        }
        let isOther = verdicts[place].map { $0 != said } ?? false
        if verdicts[place] == nil, verdicts.count < 2 * Self.recipientsMax { verdicts[place] = said }
        if isDevice { person.hasDevice = true } else { person.hasOwn = true }
        if isOther || (person.hasOwn && person.hasDevice), !person.isContradicted {
            person.isContradicted = true
            contradictions += 1
        }
        if people[key] != nil || people.count < Self.recipientsMax { people[key] = person }
    }

    private mutating func count(_ record: JSONCursor, _ verdict: String, _ isAccepted: Bool, since writtenMs: Int64) {
        let reason = record["reason"]?.string ?? ""
        var label = reason.utf8.count <= 64 && verdict.utf8.count <= 32 ? "\(verdict) \(reason)" : "other"
        if outcomes[label] == nil, outcomes.count >= Self.reasonsMax { label = "other" }
        outcomes[label, default: 0] += 1
        if isAccepted, let ms = record["latency_ms"]?.int { inWorker.add(ms) }
        guard let atMs = record["at_ms"]?.int else { return }
        let ms = atMs.subtractingReportingOverflow(writtenMs).partialValue
        fromWriting.add(ms)
        guard let lane = record["lane"]?.string, lane.utf8.count <= 64 else { return }
        if lanes[lane] != nil || lanes.count < Self.lanesMax { lanes[lane, default: LatencySpread()].add(ms) }
    }

    // MARK: The end

    /// - Returns: whether a recipient of a written event has no final outcome.
    public func isSilent(_ event: Event, uid: String) -> Bool {
        if events[hash(event.app, event.id)]?.hasEnded == true { return false }
        guard let person = people[hash(event.app, event.id, uid)] else { return false }
        return person.isExpected && !person.hasOutcome
    }

    /// Time when the event was first written, Unix ms; nil if it was not written or is not judged.
    public func writtenMs(_ event: Event) -> Int64? { events[hash(event.app, event.id)]?.atMs }

    private func hash(_ texts: String...) -> UInt64 {
        var hash = SipHash128(key0: seeds.0, key1: seeds.1)
        for text in texts { hash.update(lengthThen: text) }
        return hash.finish().0
    }
}
