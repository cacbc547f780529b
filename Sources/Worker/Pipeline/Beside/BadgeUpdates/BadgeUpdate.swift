// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import Kafka
import PushCore
import Redis

/// A badge without an alert on its way to one user's devices: lowered by a read (`clear_on_read`), or the newest number
/// again after two workers pushed the same device at the same time.
///
/// Reads come in bursts: those of one user within `waitNanos` share one update. It holds the offsets of its reads until
/// the pushes have ended.
final class BadgeUpdate {
    /// Longer than a claimed push may wait without another check, so an alert that was decided before the read is sent
    /// first.
    static let waitNanos: UInt64 = 250_000_000
    /// A number that APNs does not accept within this time is left to the next push.
    static let patienceMs: Int64 = 60_000
    /// APNs keeps only the newest number for a device that is off.
    static let collapseID = Array("carillon-badge".utf8)
    static let storedSeconds: Int64 = 86_400

    let app: AppContext
    let uid: String
    /// Its newest event.
    var eventID: String
    /// Records with offsets that wait for it.
    var changes: [ChangeJob]
    /// Events (revokes) that are kept until it has ended.
    var events: [EventJob] = []
    /// Devices that got the number of the newest revoke with its alert.
    var told: [String] = []
    /// The reason for sending one device a number again; nil for a read that lowered the badge, which goes to all
    /// pushed devices.
    let newest: Newest?
    var ref = WorkRef.none
    /// Answers of the present step.
    var answers = Answers()
    /// Consecutive failed steps, for the pause between retries.
    var failures = 0
    var tokens: [BoundToken] = []
    /// Devices with at least one push.
    var pushed: [String] = []
    var targets: [Target] = []
    /// Targets that have not ended.
    var open = 0
    /// Records without the broker's acknowledgement.
    var unackedRecords = 0
    /// Its records that go to other owners; nil for none.
    var going: (changes: [ChangeJob], events: [EventJob])?
    /// Some device did not get the number, because it was not exact.
    var isWithheld = false
    /// They were handed back before all devices were updated.
    var isLeft = false

    /// Kafka's time of the newest record that it is about; 0: none.
    var kafkaMs: Int64 {
        changes.last?.origin?.record.source.kafkaMs ?? events.last?.origin?.source.kafkaMs ?? 0
    }

    /// A push with a lower number was in flight while another worker claimed a higher one.
    struct Newest {
        /// The number in the push.
        var pushed: Int64
        /// `AcceptedBadge.asOfMs`.
        var asOfMs: Int64
        /// Deadline, monotonic: a process that ends does not wait for it.
        var untilNanos: UInt64

        /// Also the time limit for APNs.
        static let patienceMs: Int64 = 5_000
    }

    /// One device of the update.
    struct Target {
        var token: BoundToken
        var pushID: PushID
        /// Its push in the APNs client while it is checked.
        var ticket: PushTicket?
        /// Answers of the check before sending.
        var answers = Answers()
        var isOwned = false
        /// The inputs of the number can never be read.
        var isNumberLost = false
        /// It has the device's turn (`DeviceQueues`).
        var hasTurn = false
        /// The APNs client has the push.
        var isWithClient = false
        var base = BadgeReading()
        var size: Int64 = 0
        /// The number that was sent.
        var badge: Int64?
        var isEnded = false

        /// The target of the push, with one id for every attempt.
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

    /// The number sent again, without a record.
    init(_ accepted: AcceptedBadge, nowNanos: UInt64) {
        app = accepted.app
        uid = accepted.uid
        eventID = accepted.eventID
        changes = []
        newest = Newest(
            pushed: accepted.badge, asOfMs: accepted.asOfMs,
            untilNanos: nowNanos &+ UInt64(Newest.patienceMs) &* 1_000_000)
        // A repeated number may be overtaken again, so each has its own id.
        let id = PushID.make(
            app: accepted.app.id, uid: uid, msgID: eventID, kind: "newest \(accepted.badge)",
            tokenHex: accepted.token.record.hex)
        targets = [Target(accepted.token, pushID: id)]
        open = 1
    }

    /// The owner of the badge.
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

    /// Not updated yet, and no push of it is in the APNs client.
    func isUnsent(_ index: Int) -> Bool {
        index < targets.count && !targets[index].isEnded && !targets[index].isWithClient
    }

    /// The other owners update all devices again.
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

    func target(_ index: Int) -> PushTarget { .badgeUpdate(DeviceRef(work: ref, device: index)) }

    func tag(_ question: Question, _ index: Int = 0) -> UInt64 { Tag(ref, question, index: index).bits }

    /// The target's device in `DeviceQueues`.
    func queueKey(_ index: Int) -> UInt64 {
        DeviceKey.make(app: app.id, uid: uid, device: targets[index].token.device)
    }

    /// The newest alert token of each device to update.
    func chooseTargets() {
        let wanted = Set(pushed.map { UTF8Key($0) })
        var newest: [UTF8Key: BoundToken] = [:]
        for token in tokens where token.record.type == .alert && wanted.contains(UTF8Key(token.device)) {
            let device = UTF8Key(token.device)
            if let other = newest[device], other.version >= token.version { continue }
            newest[device] = token
        }
        // The tag has one byte for a device's index.
        targets = newest.values.sorted { $0.device < $1.device }.prefix(255).map { token in
            let id = PushID.make(
                app: app.id, uid: uid, msgID: eventID, kind: "read", tokenHex: token.record.hex)
            return Target(token, pushID: id)
        }
        open = targets.count
    }

    /// Pushed devices without a token.
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
