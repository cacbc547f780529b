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
final class BadgeUpdate: PushJob {
    /// Longer than a claimed push may wait without another check, so an alert that was decided before the read is sent
    /// first.
    static let waitNanos: UInt64 = 250_000_000
    /// A number that APNs does not accept within this time is left to the next push.
    static let patienceMs: Int64 = 60_000
    /// APNs keeps only the newest number for a device that is off.
    static let collapseID = Array("carillon-badge".utf8)
    static let storedSeconds: Int64 = 86_400

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
    /// Answers of the present step.
    var answers = Answers()
    /// Consecutive failed steps, for the pause between retries.
    var failures = 0
    var tokens: [BoundToken] = []
    /// Devices with at least one push.
    var pushed: [String] = []
    /// By device.
    var readings: [Reading] = []
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

    /// The parts of the number, as the check of a device has read them.
    struct Reading {
        // Nil before the answer, and where it can never be read.
        var base: BadgeReading?
        var size: Int64?

        var number: Int64? {
            guard let base, let size else { return nil }
            return base.badge(size: size)
        }
    }

    init(app: AppContext, uid: String, eventID: String, changes: [ChangeJob] = []) {
        self.eventID = eventID
        self.changes = changes
        newest = nil
        super.init(app: app, uid: uid)
    }

    /// The number sent again, without a record.
    init(_ accepted: AcceptedBadge, nowNanos: UInt64) {
        eventID = accepted.eventID
        changes = []
        newest = Newest(
            pushed: accepted.badge, asOfMs: accepted.asOfMs,
            untilNanos: nowNanos &+ UInt64(Newest.patienceMs) &* 1_000_000)
        super.init(app: accepted.app, uid: accepted.uid)
        // A repeated number may be overtaken again, so each has its own id.
        add(accepted.token, "newest \(accepted.badge)", nowNanos)
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

    /// All devices ended, and the broker has their records.
    var isComplete: Bool { unackedRecords == 0 && !devices.contains(where: \.isOpen) }

    /// The other owners update all devices again.
    func leave() {
        isLeft = true
        for change in going?.changes ?? [] { change.staysUnsettled = true }
        for event in going?.events ?? [] { event.staysUnsettled = true }
    }

    var owner: Owner { Owner(app: app.id, uid: uid) }

    /// A push to the device of this token, with one id for every attempt.
    private func add(_ token: BoundToken, _ kind: String, _ nowNanos: UInt64) {
        var device = DeviceWork(route: Route(device: token.device, way: .apns(token: 0, copyTo: nil)))
        let id = PushID.make(app: app.id, uid: uid, msgID: eventID, kind: kind, tokenHex: token.record.hex)
        device.enqueue(
            DevicePush(
                token: token, id: id, badge: nil, mayHaveReport: true, startedNanos: nowNanos, checkedNanos: 0))
        devices.append(device)
        readings.append(Reading())
    }

    /// A push to the newest alert token of each device to update.
    func chooseDevices(nowNanos: UInt64) {
        let wanted = Set(pushed.map { UTF8Key($0) })
        var newest: [UTF8Key: BoundToken] = [:]
        for token in tokens where token.record.type == .alert && wanted.contains(UTF8Key(token.device)) {
            let device = UTF8Key(token.device)
            if let other = newest[device], other.version >= token.version { continue }
            newest[device] = token
        }
        // The tag has one byte for a device's index.
        for token in newest.values.sorted(by: { $0.device < $1.device }).prefix(255) { add(token, "read", nowNanos) }
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
