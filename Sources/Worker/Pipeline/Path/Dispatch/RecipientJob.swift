// SPDX-License-Identifier: Apache-2.0
import Digits
import Payload
import PushCore
import Redis

/// One recipient of one event in progress, from the first read to the mark.
///
/// Before its routes begin its machine has a candidate; afterwards it keeps only open state.
final class RecipientJob: PushJob {
    let event: EventJob
    /// Its number among all recipients of the shard, in the order of their start.
    let order: UInt64
    var machine: RecipientMachine
    /// The settings for its pushes, from the last round.
    var settings = UserSettings()
    /// The text of an SMS, from the last round; nil if none may be requested.
    var smsText: SMSText?
    /// Connections without a timely ack.
    var silentConnections: [SilentConnection] = []
    var burst = Burst.none
    /// The journal, until the recipient is marked or parked.
    var journal = Journal()
    /// What marks it as finished, if it was built before the last record was acknowledged.
    var mark: FinishedMark?
    /// The devices that wait to be parked, and the state from the topic; nil if it has had neither.
    var parking: RecipientParking?
    /// App, user, message and kind, which a repeat of the event shares.
    private(set) lazy var dedupKey = keepPrefix().id()
    /// Held by DND until this time, for the digest, Unix ms; nil if it is not.
    var heldUntilMs: Int64?

    // Small parts together, so that one recipient fits 320 bytes.

    /// `Decision.counted` of the last round, or of an earlier round with a refused claim.
    var isCounted = false
    private(set) var usesContent = true
    /// The reason for devices without a route in later rounds.
    var leftReason = Reason.noToken
    var firstDecision = FirstDecision.due
    var firstClaim = FirstClaim.none
    var openMark = OpenMark.mayExist
    var hold = Hold.none
    var flags: Flags = []
    /// Consecutive failed steps besides the candidate's; spaces the retries.
    var failures: Int32 = 0
    /// The results of the last decision's steps.
    var facts: DecisionFacts = []
    /// Devices that added 1 for the message that a revoke names (`badge: none`).
    var addedBy = AddedDevices()
    /// The device with the last accepted push. Its record and the mark are outstanding. -1 for none.
    var unmarkedDevice: Int32 = -1
    /// Rounds caused by a re-bound token.
    var reboundRounds: Int32 = 0

    /// The first decision about it, which the event's deliveries wait for.
    enum FirstDecision {
        case due
        /// Redis could not answer, or it waits behind such a recipient: it is counted in `EventJob.postponed`.
        case postponed
        case made
    }

    /// The first answer to a claim of it.
    enum FirstClaim {
        case none
        case fresh
        /// An earlier try, of this worker or another, began it and did not finish.
        case resumed
    }

    /// Its mark in Redis before its end.
    enum OpenMark: Equatable {
        /// The script has written one, or an earlier try may have.
        case mayExist
        /// Plain commands claimed it: there is none before it is finished or waits.
        case notYet
        /// It was denied without a claim, and has none.
        case none
        /// Redis refused the claim, a note or the mark. A record in `carillon.parked` takes the place of the mark, and its reader
        /// claims. With `counts` that claim counts the message, by any later decision.
        case owed(counts: Bool)
    }

    /// The command that marks it as finished, or its part of one.
    enum FinishedMark {
        case own(PreparedCommand)
        /// In the common key of the message's members.
        case inGroup(PreparedCommand)

        var inGroup: PreparedCommand? { if case .inGroup(let part) = self { part } else { nil } }

        /// The stored text: of `SET key value`, or of the pair of user and value in the common key.
        var value: [UInt8]? {
            switch self {
            case .own(let command): command.argument(2)
            case .inGroup(let part): part.argument(1)
            }
        }
    }

    /// Phones wait for the user's desktop.
    enum Hold {
        case none
        /// Until a timer ends.
        case timed
        /// `hold_s` 0: until a live desktop has the message.
        case untilDesktopHasIt
        /// It is over: phones wait no longer.
        case over
    }

    enum Burst {
        case none
        /// The recipient's alert opened a burst's window, or waited for one before a later round: all its devices are pushed at once.
        case leads
        /// It waits for the end of the window.
        case waits(BurstPlace)
    }

    /// Independent facts, in any phase.
    struct Flags: OptionSet {
        var rawValue: UInt32
        static let hasDelivery = Flags(rawValue: 1 << 0)
        /// The one record without a device is written.
        static let recordedWithoutDevice = Flags(rawValue: 1 << 1)
        /// The alert is allowed although the user muted the conversation.
        static let forced = Flags(rawValue: 1 << 2)
        /// A device of the user was live in this round; kept only if an SMS may be requested.
        static let live = Flags(rawValue: 1 << 3)
        /// A push was accepted.
        static let accepted = Flags(rawValue: 1 << 4)
        /// A push ended without its alert.
        static let failed = Flags(rawValue: 1 << 5)
        static let offeredSMS = Flags(rawValue: 1 << 6)
        /// Repeats of its dedup key wait for its end.
        static let holdsDedupKey = Flags(rawValue: 1 << 8)
        /// Its revoke lowered the user's badge by one.
        static let loweredBadge = Flags(rawValue: 1 << 9)
        /// Its message adds 1 to the user's badge, by this try or an earlier one.
        static let addsToBadge = Flags(rawValue: 1 << 10)
        /// A revoke of a message that this user has nothing of.
        static let originalUnknown = Flags(rawValue: 1 << 11)
        /// The lower number of its revoke is on the way to the devices.
        static let clearsBadge = Flags(rawValue: 1 << 12)
        /// Its partition goes to another owner.
        static let partitionGoes = Flags(rawValue: 1 << 13)
        /// The recipient cannot be parked: the broker refused its record.
        static let staysInMemory = Flags(rawValue: 1 << 14)
        /// A device acknowledged: the user has the message.
        static let reached = Flags(rawValue: 1 << 15)
        /// A live desktop acknowledged, or its push was accepted.
        static let desktopHasIt = Flags(rawValue: 1 << 18)
        /// A later round counted the message: devices that were pushed before show a lower number.
        static let countedLate = Flags(rawValue: 1 << 19)
    }

    init(event: EventJob, uid: String, candidate: Candidate) {
        self.event = event
        machine = RecipientMachine(candidate)
        order = candidate.order
        super.init(app: event.app, uid: uid)
    }

    /// The present round of its decision; nil if none is in progress.
    var candidate: Candidate? { machine.candidate }

    /// The device and a message, in `Sender.addedAlerts`.
    func addedAlert(_ index: Int, _ msgID: String) -> UInt64 { deviceKey(index) ^ StateKeys.digest(msgID) }

    /// Hash prefix of all push ids of this recipient.
    var pushIDPrefix: PushIDPrefix {
        PushIDPrefix(app: event.app.id, uid: uid, kind: event.subject.kind, id: event.subject.id)
    }

    /// Push id of an earlier attempt that a worker of an earlier version noted; nil if the token was re-bound since.
    func earlierPushID(of device: String, _ candidate: Candidate) -> PushID? {
        let tokens = candidate.recipient.tokens
        let type = event.message?.read { $0.tokenType } ?? .alert
        let index = tokens.indices.last { index in
            guard tokens[index].device.isSame(as: device) else { return false }
            return event.content?.activity?.mayUse(index, of: tokens) ?? (tokens[index].record.type == type)
        }
        guard let index, tokens[index].record.boundMs <= event.origin?.source.kafkaMs ?? .max else { return nil }
        return pushIDPrefix.id(tokenHex: tokens[index].record.hex)
    }

    /// The candidate has it for the first pushes too: keeping it longer costs more than to hash again.
    private func keepPrefix() -> PushIDPrefix {
        let prefix = pushIDPrefix
        candidate?.pushIDPrefix = prefix
        return prefix
    }

    /// Before its first decision it is postponed: it takes no room from recipients that can be decided now.
    func beginWaiting() {
        if firstDecision != .due { return }
        firstDecision = .postponed
        event.postponed += 1
    }

    func endWaiting() {
        if firstDecision != .postponed { return }
        firstDecision = .due
        event.postponed -= 1
    }

    /// Orders the messages of a conversation. `order` is later for one that returned from the topic.
    var messagePlace: (Int32, Int64, UInt64) {
        let source = event.origin?.source ?? EventSource()
        return (source.partition, source.offset, order)
    }

    var isDecided: Bool { firstDecision == .made }
    var isResumed: Bool { firstClaim == .resumed }

    /// Its place in a burst; nil if it waits for none.
    var burstPlace: BurstPlace? { if case .waits(let place) = burst { place } else { nil } }

    /// It waits for a burst no longer.
    func leaveBurst() { if case .waits = burst { burst = .none } }

    var isForced: Bool { flags.contains(.forced) }

    /// An extension adds 1 for its alert (`badge: none`).
    var isAddedByClient: Bool { event.isAddedByClient && flags.contains(.addsToBadge) }

    /// Whether a device has neither a new route nor an end. By index: the array's iterator would copy each device.
    var hasReplacedDevice: Bool { devices.indices.contains { devices[$0].phase == .replaced } }

    /// - Returns: whether the device waits for the end of its burst's window; false for an unknown device.
    func isMerging(_ index: Int) -> Bool { index < devices.count && devices[index].isMerging }

    /// The earliest time at which an ack is due (monotonic); nil if none is awaited.
    var earliestAckNanos: UInt64? {
        var earliest: UInt64?
        for device in devices {
            guard let due = device.ackDueNanos else { continue }
            earliest = min(earliest ?? .max, due)
        }
        return earliest
    }

    /// Whether nothing was done for it, by this try or an earlier one.
    var isUntouched: Bool {
        devices.isEmpty && silentConnections.isEmpty && journal.isEmpty && parking == nil && !isResumed
            && !flags.contains(.accepted) && !flags.contains(.recordedWithoutDevice)
    }

    /// What was done for it so far, without the facts that a claim reads.
    var progress: Progress {
        var progress = Progress()
        progress.devices = devices.map { Progress.Device($0.route.device, $0.standing) }
        progress.recorded = recordedElsewhere
        progress.returned = parking?.returned ?? []
        progress.silent = silentConnections.map(\.device)
        progress.hasAccepted = flags.contains(.accepted)
        progress.isRecordedWithoutDevice = flags.contains(.recordedWithoutDevice)
        return progress
    }

    /// Devices with an end that are not among `devices`.
    private var recordedElsewhere: [String] {
        journal.endedDevices.filter { device in
            !devices.contains { $0.phase == .ended && $0.route.device.isSame(as: device) }
        }
    }

    /// In the first round of a recipient without any device's record: how it will be recorded by the present decision; nil if
    /// its devices will be.
    var withoutDevice: WithoutDevice? {
        guard devices.isEmpty, let reason = candidate?.decision?.finalReason,
            isUntouched || !progress.hasDeviceVerdicts(reason)
        else { return nil }
        return WithoutDevice(reason: reason, tokens: event.tokenType)
    }

    /// A request for the claim of this recipient's event.
    func claimRequest(nowMs: Int64) -> ClaimRequest {
        ClaimRequest(app: event.app.id, uid: uid, event.subject, counted: isCounted, nowMs: nowMs)
    }

    /// The reply of a claim about the alert, for the worker and for `explain`.
    func note(_ claim: ClaimReply, isFirst: Bool) {
        if claim.lowered {
            flags.insert(.loweredBadge)
            addedBy.formUnion(claim.addedBy)
        }
        if claim.adds { flags.insert(.addsToBadge) }
        if !claim.isTargetUnknown {
            flags.remove(.originalUnknown)
        } else if isFirst {
            // A later claim finds the mark of this one's own making.
            flags.insert(.originalUnknown)
        }
    }

    /// Whether it may be marked in the members' common key: it has no mark of its own.
    var usesGroupMarks: Bool {
        event.groupMarkNote != nil && !uid.isEmpty && heldUntilMs == nil && parking == nil
            && (openMark == .notYet || openMark == .none) && !journal.hasAddedByClient
    }

    /// Whether the mark is owed to Redis. Then the pushes have no badge.
    var owesClaim: Bool { if case .owed = openMark { true } else { false } }

    var owesCount: Bool { openMark == .owed(counts: true) }

    func oweMark(counts: Bool = false) { openMark = .owed(counts: counts || owesCount) }

    /// A script has found or written its mark.
    func noteMark() { if !owesClaim { openMark = .mayExist } }

    /// All its devices ended and only the mark is left: releases everything else, while it is in the processor's cache. A
    /// hand-back notes the last push in the mark.
    func keepOnlyMark() {
        if unmarkedDevice < 0 { devices = [] }
        for index in devices.indices { devices[index].keepOnlyPush() }
        silentConnections = []
        settings = UserSettings()
        leaveContent()
    }

    /// It no longer needs the event's content.
    func leaveContent() {
        if !usesContent { return }
        usesContent = false
        event.leaveContent()
    }

    /// It needs the event's content again.
    func needContent(_ reader: EventReader) {
        if usesContent { return }
        usesContent = true
        event.useContent()
        event.restoreContent(reader)
    }

    /// Leaves the content if all its pushes are in the APNs clients and nothing else is open.
    override func leaveContentIfSent() {
        guard candidate == nil, !event.wantsSMS, event.digest == nil,
            devices.allSatisfy({ $0.isWithClient || !$0.isOpen })
        else { return }
        leaveContent()
    }
}

/// A connection without a timely ack.
struct SilentConnection: Sendable, Equatable {
    let device: String
    let epoch: Int64
}

/// The variant of an SMS's text. Separate, because few messages request one.
final class SMSText {
    let variant: PayloadVariant

    init(_ variant: PayloadVariant) {
        self.variant = variant
    }
}

/// The target of a delivery. Separate, because pushes are much more frequent.
final class LiveConnection {
    let device: String
    let gateway: String
    let epoch: Int64

    init(_ presence: DevicePresence) {
        device = presence.device
        gateway = presence.gateway
        epoch = presence.connectionEpoch
    }
}
