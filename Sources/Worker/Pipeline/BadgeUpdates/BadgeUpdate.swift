import APNs
import Digits
import Kafka
import PushCore
import Redis

/// A badge without an alert on its way to devices of one user: lowered by a read (`clear_on_read`), or the newest number once
/// more after two workers pushed the same device at once.
///
/// Reads come in bursts: those of one user within `waitNanos` share one update. It holds the offsets of its reads until the
/// pushes have ended.
final class BadgeUpdate {
    /// Longer than a claimed push may wait without another check: an alert that was decided before the read leaves first.
    static let waitNanos: UInt64 = 250_000_000
    /// A number that APNs does not take within this time is left to the next push.
    static let patienceMs: Int64 = 60_000
    /// What APNs keeps for a device that is off: the newest number only.
    static let collapseID = Array("carillon-badge".utf8)
    static let storedSeconds: Int64 = 86_400

    let app: AppContext
    let uid: String
    /// The newest event that it is about.
    var eventID: String
    /// Records whose offsets wait for it.
    var changes: [ChangeJob]
    /// Events, recalls, that are kept until it has ended.
    var events: [EventJob] = []
    /// Devices that got the number of the newest revoke with its alert.
    var told: [String] = []
    /// Why one device is told a number once more; nil: reads lowered it, and all devices that were pushed are told.
    let newest: Newest?
    var ref = WorkRef.none
    /// Answers that the present step waits for.
    var awaiting = 0
    var hasFailed = false
    /// Failed steps in a row; spaces the retries.
    var failures = 0
    var tokens: [BoundToken] = []
    /// Devices that some push was made for.
    var pushed: [String] = []
    var targets: [Target] = []
    /// Targets without an end.
    var open = 0
    /// Records that the broker has not acknowledged.
    var unackedRecords = 0
    /// Of its records, those that go to other owners; nil: none does.
    var going: (changes: [ChangeJob], events: [EventJob])?
    /// They went before all devices were told.
    var isLeft = false

    /// Kafka's time of the newest record that it is about; 0: none.
    var kafkaMs: Int64 {
        changes.last?.origin?.record.source.kafkaMs ?? events.last?.origin?.source.kafkaMs ?? 0
    }

    /// A push with a lower number was out while another worker claimed a higher one.
    struct Newest {
        /// What the push carried.
        var pushed: Int64
        /// `AcceptedBadge.asOfMs`.
        var asOfMs: Int64
        /// When it is given up, monotonic: a process that ends does not wait for it.
        var untilNanos: UInt64

        /// Also how long APNs may take.
        static let patienceMs: Int64 = 5_000
    }

    /// One device on its way.
    struct Target {
        var token: BoundToken
        var pushID: PushID
        /// Where the push waits in the APNs client while it is checked.
        var ticket: PushTicket?
        /// Answers of the check before sending that are still to come.
        var awaiting = 0
        var hasFailed = false
        var isOwned = false
        /// What the number is made of cannot be read, and no waiting mends it.
        var isNumberLost = false
        /// The device is its own (`DeviceQueues`).
        var hasTurn = false
        /// The APNs client has the push.
        var isWithClient = false
        var base = BadgeReading()
        var size: Int64 = 0
        /// The number that was sent.
        var badge: Int64?
        var isEnded = false

        /// Whom the push goes to; the same id for every attempt.
        init(_ token: BoundToken, pushID: PushID) {
            self.token = token
            self.pushID = pushID
        }
    }

    init(app: AppContext, uid: String, eventID: String, changes: [ChangeJob] = []) {
        self.app = app
        self.uid = uid
        self.eventID = eventID
        self.changes = changes
        newest = nil
    }

    /// The number once more, for no record's sake.
    init(_ accepted: AcceptedBadge, nowNanos: UInt64) {
        app = accepted.app
        uid = accepted.uid
        eventID = accepted.eventID
        changes = []
        newest = Newest(
            pushed: accepted.badge, asOfMs: accepted.asOfMs,
            untilNanos: nowNanos &+ UInt64(Newest.patienceMs) &* 1_000_000)
        // The number once more may be overtaken in its turn: each has an id of its own.
        let id = PushID.make(
            app: accepted.app.id, uid: uid, msgID: eventID, kind: "newest \(accepted.badge)",
            tokenHex: accepted.token.record.hex)
        targets = [Target(accepted.token, pushID: id)]
        open = 1
    }

    /// Whose badge it is about.
    struct Owner: Hashable {
        private let app: UTF8Key
        private let uid: UTF8Key

        init(app: String, uid: String) {
            self.app = UTF8Key(app)
            self.uid = UTF8Key(uid)
        }
    }

    /// The device has the number: only revokes lowered it, and the alert of the newest one carried it.
    func isTold(_ device: String) -> Bool { changes.isEmpty && told.containsSame(device) }

    /// Not told yet, and no push of it is with the APNs client.
    func isUnsent(_ index: Int) -> Bool {
        index < targets.count && !targets[index].isEnded && !targets[index].isWithClient
    }

    /// The other owners tell all devices once more.
    func leave() {
        isLeft = true
        for change in going?.changes ?? [] { change.isHandedBack = true }
        for event in going?.events ?? [] { event.isHandedBack = true }
    }

    /// The device is free for its push.
    func turnCame(_ index: Int) {
        if index < targets.count { targets[index].hasTurn = true }
    }

    var owner: Owner { Owner(app: app.id, uid: uid) }

    func tag(_ stage: Tag.Stage, _ index: Int = 0) -> UInt64 { Tag(ref, stage, index: index).bits }

    /// A target's device in `DeviceQueues`.
    func queueKey(_ index: Int) -> UInt64 {
        DeviceKey.make(app: app.id, uid: uid, device: targets[index].token.device)
    }

    /// The newest alert token of each device that is to be told.
    func chooseTargets() {
        let wanted = Set(pushed.map { UTF8Key($0) })
        var newest: [UTF8Key: BoundToken] = [:]
        for token in tokens where token.record.type == .alert && wanted.contains(UTF8Key(token.device)) {
            let device = UTF8Key(token.device)
            if let other = newest[device], other.version >= token.version { continue }
            newest[device] = token
        }
        // A device's index travels in a byte of its tags.
        targets = newest.values.sorted { $0.device < $1.device }.prefix(255).map { token in
            let id = PushID.make(
                app: app.id, uid: uid, msgID: eventID, kind: "read", tokenHex: token.record.hex)
            return Target(token, pushID: id)
        }
        open = targets.count
    }

    /// Devices that were pushed and have no token any more.
    var departed: [String] {
        let bound = Set(tokens.map { UTF8Key($0.device) })
        return pushed.filter { !bound.contains(UTF8Key($0)) }
    }
}

/// A device that got the number with the alert of the revoke that lowered it.
struct ToldBadge {
    let owner: BadgeUpdate.Owner
    let event: EventJob
    let device: String

    init(_ job: RecipientJob, device: String) {
        owner = BadgeUpdate.Owner(app: job.event.app.id, uid: job.uid)
        event = job.event
        self.device = device
    }
}
