import Digits
import PushCore
import Redis

/// One recipient of one event in work, from the first read to the mark that says it is finished.
///
/// Until its routes have begun it has a `candidate`; afterwards only what is open is kept.
final class RecipientJob {
    let event: EventJob
    let uid: String
    /// Place among all recipients of the shard, in the order in which they began.
    let order: UInt64
    var ref = WorkRef.none
    var machine = RecipientMachine()
    /// The present round of its decision; nil: none is under way.
    var candidate: Candidate?
    /// Every device that was ever on its way; rounds append, so that an answer's index stays right.
    var devices: [DeviceWork] = []
    /// What its pushes are rendered with: of the last round.
    var settings = UserSettings()
    /// Only where an SMS may be asked for: whose words it is put together by.
    var smsTokens: [BoundToken] = []
    /// Connections that did not acknowledge in time.
    var suspects: [Suspect] = []
    /// Where it waits to be told together with others; nil: it does not.
    var burst: BurstPlace?
    /// What is to be kept of the outcomes; nil: none yet, or the user is not traced.
    var trace: TraceBytes?
    /// The command that marks it finished, where it was put together before the last record was acknowledged.
    var mark: PreparedCommand?
    /// The device that was pushed last, if no mark says so: its record and the finished mark are to come. Empty: none.
    var unmarkedDevice = ""
    /// What it has to do with `carillon.parked`; nil: nothing.
    var parking: RecipientParking?
    /// When the last round was read, monotonic.
    var readNanos: UInt64 = 0
    /// Devices whose token was bound anew by the same user: the present round finds their new route, or they end.
    var rebound: [Int] = []
    /// App, user, message and kind: what a repeat of the event has in common with it.
    private(set) lazy var dedupKey = pushIDPrefix.id()
    /// Held back by quiet hours, to be told at their end, Unix ms; nil: it is not.
    var heldUntilMs: Int64?

    // Small parts, together: one recipient in work fits 320 bytes.

    /// `Decision.counted` of the last round.
    var isCounted = false
    var hasMarkFailed = false
    private var usesContent = true
    /// Why devices that no later round had a way to end.
    var leftReason = Reason.noToken
    var flags: Flags = []
    /// What the trace says of the decision.
    var facts: DecisionFacts = []
    /// Failed steps in a row beside the candidate's; spaces the retries.
    var failures: Int32 = 0
    /// Answers that the marking waits for.
    var awaitedMarks: Int32 = 0
    /// Rounds that were begun because a token was bound anew.
    var reboundRounds: Int32 = 0

    /// What is true of it, whatever its phase.
    struct Flags: OptionSet {
        var rawValue: UInt32
        /// The event's deliveries wait for it no more.
        static let decided = Flags(rawValue: 1)
        static let hasDelivery = Flags(rawValue: 2)
        /// The one record without a device is written.
        static let recordedWithoutDevice = Flags(rawValue: 4)
        /// The hold for a live desktop is over: phones wait no longer.
        static let holdOver = Flags(rawValue: 8)
        static let holdArmed = Flags(rawValue: 16)
        /// The alert is allowed although the user muted the conversation.
        static let forced = Flags(rawValue: 32)
        /// An earlier try, of this worker or another, began it and did not finish.
        static let resumed = Flags(rawValue: 64)
        /// Some claim of it was answered.
        static let claimed = Flags(rawValue: 128)
        /// A device of the user was live when this round was decided; kept only where an SMS may be asked for.
        static let live = Flags(rawValue: 256)
        /// A push was accepted.
        static let accepted = Flags(rawValue: 512)
        /// A push ended without its alert.
        static let failed = Flags(rawValue: 1024)
        static let offeredSMS = Flags(rawValue: 2048)
        /// Redis refused the claim of the last round: what is pushed carries no badge.
        static let owesClaim = Flags(rawValue: 4096)
        /// Its alert opened a burst's window: all its devices are pushed at once.
        static let leadsBurst = Flags(rawValue: 8192)
        /// Repeats of its dedup key wait for its end.
        static let holdsDedupKey = Flags(rawValue: 16384)
        /// Its recall took one off the user's badge.
        static let loweredBadge = Flags(rawValue: 32768)
        /// Its message adds 1 to the user's badge, by this try or an earlier one.
        static let addsToBadge = Flags(rawValue: 268_435_456)
        /// A revoke of a message that this user has nothing of.
        static let originalUnknown = Flags(rawValue: 536_870_912)
        /// Its recall's lower number is on the way to the devices.
        static let clearsBadge = Flags(rawValue: 65536)
        /// Its partition goes to another owner.
        static let handedBack = Flags(rawValue: 2_097_152)
        /// It cannot be parked: its record is too large for the topic.
        static let staysInMemory = Flags(rawValue: 131_072)
        /// It was claimed by plain commands, so that it has no mark before it is finished, or waits.
        static let claimedPlainly = Flags(rawValue: 262_144)
        /// It was denied without a claim, and has no mark either.
        static let denied = Flags(rawValue: 524_288)
        /// Its mark was put together to lie with those of the other members.
        static let markedTogether = Flags(rawValue: 1_048_576)
        /// A device acknowledged: the user has the message.
        static let reached = Flags(rawValue: 4_194_304)
        /// A later round let go of some device's route.
        static let replaced = Flags(rawValue: 8_388_608)
        /// Devices that no later round had a way to have their records.
        static let recordedLeftBehind = Flags(rawValue: 16_777_216)
        /// `hold_s` 0: phones wait until a live desktop has it.
        static let waitsForDesktop = Flags(rawValue: 33_554_432)
        /// A live desktop acknowledged, or its push was accepted.
        static let desktopHasIt = Flags(rawValue: 67_108_864)
        /// A later round counted the message: devices that were pushed before show a lower number.
        static let countedLate = Flags(rawValue: 1_073_741_824)
        /// Counted in `EventJob.postponed`.
        static let waiting = Flags(rawValue: 134_217_728)

        /// What a parked record carries.
        static let keptWhileParked: Flags = [
            .recordedWithoutDevice, .accepted, .failed, .offeredSMS, .clearsBadge, .reached,
        ]
        /// With `owesClaim` the record stands for a mark that Redis did not take.
        static let writtenWhileParked = keptWhileParked.union(.owesClaim)
    }

    struct Suspect {
        var device: String
        var connectionEpoch: Int64
    }

    init(event: EventJob, uid: String, candidate: Candidate) {
        self.event = event
        self.uid = uid
        self.candidate = candidate
        order = candidate.order
    }

    func tag(_ stage: Tag.Stage, _ index: Int = 0) -> UInt64 { Tag(ref, stage, index: index).bits }

    func deviceRef(_ index: Int) -> DeviceRef { DeviceRef(work: ref, device: index) }

    /// Its device among those of the process, hashed only where its push was not queued yet.
    func deviceKey(_ index: Int) -> UInt64 {
        let known = devices[index].queueKey
        return known != 0 ? known : DeviceKey.make(app: event.app.id, uid: uid, device: devices[index].route.device)
    }

    /// Hash prefix shared by all push ids of this recipient; hashed each time, which costs less than keeping it.
    var pushIDPrefix: PushIDPrefix {
        PushIDPrefix(app: event.app.id, uid: uid, kind: event.subject.kind, id: event.subject.id)
    }

    /// Before its first decision it is put off, to be read anew later: it takes no room from those who can be decided now.
    func beginWaiting() {
        guard flags.isDisjoint(with: [.decided, .waiting]) else { return }
        flags.insert(.waiting)
        event.postponed += 1
    }

    func endWaiting() {
        guard flags.remove(.waiting) != nil else { return }
        event.postponed -= 1
    }

    var isForced: Bool { flags.contains(.forced) }

    /// The device's push is queued or with the APNs client; false too of one that is known no more.
    func isPushing(_ index: Int) -> Bool { index < devices.count && devices[index].machine.isPushing }

    /// The device waits for the end of its burst's window; false too of one that is known no more.
    func isMerging(_ index: Int) -> Bool { index < devices.count && devices[index].machine.isMerging }

    /// The earliest time at which an ack is due (monotonic); nil: none is awaited.
    var earliestAckNanos: UInt64? {
        var earliest: UInt64?
        for device in devices {
            guard let due = device.machine.ackDueNanos else { continue }
            earliest = min(earliest ?? .max, due)
        }
        return earliest
    }

    /// Something for the device is out or has ended: another route would be a second alert.
    func hasRoute(to device: String) -> Bool {
        devices.contains { $0.route.device.isSame(as: device) && $0.machine.phase != .replaced }
    }

    /// Some device has a record of its own, or will have one, so that every device gets one.
    ///
    /// - Parameter reason: why nothing more goes to the recipient. The only connection of a user without tokens that did not
    ///   acknowledge is no such device: the record `no_token` is the recipient's.
    func hasDeviceVerdicts(_ reason: Reason) -> Bool {
        if let parking, !parking.returned.isEmpty || !parking.done.isEmpty { return true }
        guard reason == .noToken, let first = devices.first?.route.device else {
            return !devices.isEmpty || !suspects.isEmpty
        }
        return devices.contains { $0.machine.phase != .replaced || !$0.route.device.isSame(as: first) }
    }

    /// A request for the claim of this recipient's event.
    func claimRequest(nowMs: Int64) -> ClaimRequest {
        ClaimRequest(app: event.app.id, uid: uid, event.subject, counted: isCounted, nowMs: nowMs)
    }

    /// What a claim says of the alert, for the worker and for `explain`.
    func note(_ claim: ClaimReply, isFirst: Bool) {
        if claim.lowered { flags.insert(.loweredBadge) }
        if claim.adds { flags.insert(.addsToBadge) }
        if !claim.isTargetUnknown {
            flags.remove(.originalUnknown)
        } else if isFirst {
            // A later claim finds the mark of this one's own making.
            flags.insert(.originalUnknown)
        }
    }

    /// It may be marked together with the other members: no mark of its own stands there.
    var marksTogether: Bool {
        event.togetherNote != nil && !uid.isEmpty && heldUntilMs == nil && parking == nil
            && !flags.isDisjoint(with: [.claimedPlainly, .denied]) && !flags.contains(.owesClaim)
    }

    /// All its devices ended and only this is left to do: what they were needed for goes.
    func keepOnly(_ mark: PreparedCommand) {
        self.mark = mark
        devices = []
        trace = nil
        candidate = nil
        settings = UserSettings()
        leaveContent()
    }

    /// The event's content is not needed for it any more.
    func leaveContent() {
        guard usesContent else { return }
        usesContent = false
        event.leaveContent()
    }

    /// The event's content is needed for it once more.
    func needContent(_ reader: EventReader) {
        if usesContent { return }
        usesContent = true
        event.useContent()
        event.restoreContent(reader)
    }

    /// Leaves the content where all its pushes are with the APNs clients and nothing else of it is open.
    func leaveContentIfSent() {
        guard candidate == nil, !event.wantsSMS, event.digest == nil,
            devices.allSatisfy({ $0.machine.isWithClient || !$0.machine.isOpen })
        else { return }
        leaveContent()
    }
}

/// Where a delivery goes; of pushes there are many more, so it has a place of its own.
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

/// One device of a recipient on its way to an end.
struct DeviceWork {
    var route: Route
    var machine = DeviceMachine()
    /// It takes over the device's turn from the push that it replaces.
    var inheritsTurn = false
    /// An earlier push of the device is parked, and others wait here before this one: it is parked when its turn comes.
    var parksAtItsTurn = false
    /// A live desktop, noted where phones wait for it.
    var isDesktop = false
    /// APNs accepted its push, and no later round has counted the message since.
    var mayShowLower = false
    /// What is pushed to; kept here because a later round reads the recipient anew.
    var token: BoundToken?
    /// Its device in `DeviceQueues` (`DeviceKey`); 0 before its push is queued.
    var queueKey: UInt64 = 0
    /// The connection that a delivery goes to.
    var connection: LiveConnection?
    /// The messages that its push tells of beside its own.
    var merged: MergedPush?
    var startedNanos: UInt64 = 0
    /// When Redis last said that nothing stands against this push; 0: not yet.
    var checkedNanos: UInt64 = 0
    /// Set when the push is made; the same for every attempt.
    var pushID: PushID?
    /// The number that the push carries.
    var badge: Int64?
    /// A check before sending that is under way.
    var check: SendCheck?

    init(route: Route) {
        self.route = route
    }
}
