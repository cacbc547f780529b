// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import Kafka
import PushCore

/// A recipient of a one-to-one message with one open part: a push in an APNs client that sends nothing.
///
/// It holds the record and some numbers, in a third of the objects' memory. `unpacked` reads the rest from the record.
final class PackedRecipient {
    let app: AppContext
    private let raw: [UInt8]
    private let texts: PackedTexts
    private let origin: EventJob.Origin
    /// Nil for the usual settings.
    private let settings: Boxed<UserSettings>?
    private let counted: RecordCounts
    private let counts: RecipientCounts
    private let eventRef: WorkRef
    private let order: UInt64
    private let sentMs: Int64
    private let readNanos: UInt64
    /// When its push began to wait for its turn.
    let startedNanos: UInt64
    private let facts: DecisionFacts
    private let boundMs: Int64
    private let tokenVersion: Int64
    private let badge: Int64?
    private let flags: RecipientJob.Flags
    private let reboundRounds: Int32
    private let token: Int32
    private let leftReason: Reason
    private let firstClaim: RecipientJob.FirstClaim
    private let openMark: RecipientJob.OpenMark
    private let environment: APNsEnvironment
    private let tokenType: TokenRecord.Kind
    private let isCounted: Bool
    private let isDesktop: Bool
    private let mayHaveReport: Bool

    private final class Boxed<Value> {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    /// - Returns: nil if the recipient or its event has a state that is not kept.
    init?(_ job: RecipientJob) {
        let event = job.event
        guard event.hasOnlyOneRecipient, job.waitsOnlyForOnePush, let origin = event.origin,
            let device = job.devices.first, let push = device.push, let bound = push.token,
            case .apns(let token, nil) = device.route.way,
            let texts = PackedTexts(uid: job.uid, device: device.route.device, bound)
        else { return nil }
        self.texts = texts
        self.origin = origin
        app = event.app
        raw = event.raw
        settings = job.settings == UserSettings() ? nil : Boxed(job.settings)
        counted = event.counted
        counts = job.counts
        eventRef = event.ref
        order = job.order
        sentMs = event.sentMs
        readNanos = job.readNanos
        startedNanos = push.startedNanos
        facts = job.facts
        boundMs = bound.record.boundMs
        tokenVersion = bound.version
        badge = push.badge
        flags = job.flags
        reboundRounds = job.reboundRounds
        self.token = Int32(truncatingIfNeeded: token)
        leftReason = job.leftReason
        firstClaim = job.firstClaim
        openMark = job.openMark
        environment = bound.record.environment
        tokenType = bound.record.type
        isCounted = job.isCounted
        isDesktop = device.isDesktop
        mayHaveReport = push.mayHaveReport
    }

    /// Whether its record is of such a partition of the events topic.
    func isOf(_ partitions: Set<TopicPartition>) -> Bool { partitions.contains(origin.partition) }

    var mayPark: Bool { flags.mayPark(raw) }

    /// The recipient as it was, with its event and the event's content; nil if the record cannot be read any more.
    func unpacked(_ ref: WorkRef, _ reader: EventReader) -> RecipientJob? {
        guard let read = try? reader.read(raw, of: .events, latestMs: sentMs), case .message(let message) = read.body
        else { return nil }
        let event = EventJob(message, of: read, app: app, raw: raw, origin: origin)
        event.goOnWithOneRecipient(eventRef, counted, begunNanos: startedNanos)
        return recipient(of: event, ref)
    }

    /// The recipient as it was, of its event.
    func recipient(of event: EventJob, _ ref: WorkRef) -> RecipientJob {
        let record = TokenRecord(
            hex: texts.tokenHex, environment: environment, topic: texts[.topic] ?? "", type: tokenType,
            credential: texts[.credential], contentKey: texts[.contentKey], language: texts[.language],
            zone: texts[.zone], boundMs: boundMs)
        let bound = BoundToken(device: texts[.device] ?? "", record: record, version: tokenVersion)
        let uid = texts[.uid] ?? ""
        let job = RecipientJob(event: event, uid: uid, candidate: Candidate(uid: uid, order: order))
        job.ref = ref
        job.machine = RecipientMachine(openDevices: 1)
        job.settings = settings?.value ?? UserSettings()
        job.counts = counts
        job.readNanos = readNanos
        job.isCounted = isCounted
        job.leftReason = leftReason
        job.firstDecision = .made
        job.firstClaim = firstClaim
        job.openMark = openMark
        job.flags = flags
        job.facts = facts
        job.reboundRounds = reboundRounds
        job.devices = [device(of: job, bound)]
        return job
    }

    private func device(of job: RecipientJob, _ bound: BoundToken) -> DeviceWork {
        var device = DeviceWork(route: Route(device: bound.device, way: .apns(token: Int(token), copyTo: nil)))
        device.isDesktop = isDesktop
        device.queueKey = DeviceKey.make(app: app.id, uid: job.uid, device: bound.device)
        device.enqueue(
            DevicePush(
                token: bound, id: job.pushIDPrefix.id(tokenHex: bound.record.hex), badge: badge,
                mayHaveReport: mayHaveReport, startedNanos: startedNanos, checkedNanos: startedNanos))
        device.turnCame()
        device.send()
        return device
    }
}

extension EventJob {
    /// It is an ordinary message, all of it is done except the push of its only open recipient, and it came from the events topic.
    fileprivate var hasOnlyOneRecipient: Bool {
        subject.kind == .message && parked == nil && digest == nil && chunkPart == nil && plan == nil
            && content == nil && audience.isEmpty && !hasManyRecipients && groupMarkNote == nil && fanOutPhase == .ready
            && openParts == 1 && undecided == 0 && areDeliveriesSettled
            && (deliveries?.waiting.isEmpty ?? true) && !isHandedBack && !isExpanding && !wantsSMS
    }

    fileprivate func goOnWithOneRecipient(_ ref: WorkRef, _ counted: RecordCounts, begunNanos: UInt64) {
        self.ref = ref
        self.counted = counted
        self.begunNanos = begunNanos
        hasRecipients = true
        audience.abandon()
        useContent()
    }
}

extension RecipientJob {
    fileprivate var waitsOnlyForOnePush: Bool {
        machine == RecipientMachine(openDevices: 1) && devices.count == 1 && devices[0].isOnlySent && !usesContent
            && smsTokens.isEmpty && silentConnections.isEmpty && rebound.isEmpty && isDecided && hasNoBurst
            && trace == nil && mark == nil && parking == nil && heldUntilMs == nil && hold == .none
            && unmarkedDevice < 0
            && flags.isDisjoint(with: [.owesClaim, .owesCount, .handedBack, .hasDelivery, .accepted, .replaced])
    }

    private var hasNoBurst: Bool { if case .none = burst { true } else { false } }
}

extension DeviceWork {
    /// The APNs client has its push, which it neither backed off nor is checked, and the device waits for nothing else.
    fileprivate var isOnlySent: Bool {
        guard phase == .sent, let push, let token = push.token else { return false }
        return connection == nil && !inheritsTurn && !parksAtItsTurn && !push.isAccepted && !push.mayShowLower
            && push.merged == nil && push.check == nil && token.device.isSame(as: route.device)
    }
}
