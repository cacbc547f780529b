import PushCore
import Redis

/// One recipient of one event, from the first read to the mark that says it is finished.
final class RecipientJob {
    let event: EventJob
    var slot = 0
    var generation: UInt32 = 0

    var recipient: Recipient
    var decision: Decision?
    /// Answers that the present step still waits for.
    var awaiting = 0
    /// Something failed while the present step waited; the step is taken again when all its answers are in.
    var hasFailed = false
    /// Failed steps in a row; spaces the retries.
    var retries = 0
    var step = Step.reading

    /// What the claim said.
    var claim: ClaimReply?
    /// The version of the user's tokens when they were read.
    var tokenVersion: Int64 = 0
    /// When the event's Live Activity began, Unix ms; nil: not known.
    var activityStartMs: Int64?
    /// Tokens whose owner is another by now, or nobody.
    var lostTokens: [Int] = []
    /// Every device that was ever on its way; rounds append, so that an answer's index stays right.
    var devices: [DeviceWork] = []
    /// Devices without an end.
    var open = 0
    /// Records that the broker has not acknowledged.
    var unackedRecords = 0
    /// Connections that did not acknowledge in time.
    var suspects: [Suspect] = []
    /// Devices that acknowledged, as of the last look.
    var acknowledged: [String] = []
    var flags: Flags = []
    /// What the steps of the last decision said.
    var facts: DecisionFacts = []
    /// Held back by quiet hours, to be told at their end, Unix ms; nil: it is not.
    var heldUntilMs: Int64?
    /// Where it waits to be told together with others; nil: it does not.
    var burst: BurstPlace?
    /// What is to be kept of the outcomes; nil: none yet, or the user is not traced.
    var trace: TraceBytes?
    /// The command that marks it finished, where it was put together before the last record was acknowledged.
    private(set) var mark: PreparedCommand?
    /// The claim that Redis refused, to be made up for once it takes writes again.
    var owed: Owed?

    /// Behind a pointer, since hardly anybody owes one.
    indirect enum Owed {
        case claim(ClaimRequest)
    }

    enum Step {
        case reading, leasing, claiming, sending, checkingAcks, finishing
    }

    struct Flags: OptionSet {
        var rawValue: UInt32
        /// The event's deliveries wait for it no more.
        static let decided = Flags(rawValue: 1)
        /// No mark says that it is finished: nothing was done, or the rest is left to the partition's next owner.
        static let unmarked = Flags(rawValue: 2)
        static let hasDelivery = Flags(rawValue: 4)
        /// The one record without a device is written.
        static let recordedWithoutDevice = Flags(rawValue: 8)
        /// The hold for a live desktop is over: phones wait no longer.
        static let holdOver = Flags(rawValue: 16)
        static let holdArmed = Flags(rawValue: 32)
        /// The tokens changed between read and claim, and were read a second time.
        static let reread = Flags(rawValue: 128)
        /// A push was accepted.
        static let accepted = Flags(rawValue: 64)
        /// The alert is allowed although the user muted the conversation.
        static let forced = Flags(rawValue: 512)
        /// An earlier try began it and did not finish.
        static let resumed = Flags(rawValue: 1024)
        /// A device of the user was live when this round was decided; kept only where an SMS may be asked for.
        static let live = Flags(rawValue: 2048)
        /// A push ended without its alert.
        static let failed = Flags(rawValue: 4096)
        static let offeredSMS = Flags(rawValue: 8192)
        /// Redis refused the claim of this round: what is pushed carries no badge.
        static let unclaimed = Flags(rawValue: 16384)
        /// Everything is done but the claim that Redis refused.
        static let owing = Flags(rawValue: 32768)
        /// Its alert opened a burst's window: all its devices are pushed at once.
        static let leadsBurst = Flags(rawValue: 65536)
        /// Redis was asked who acknowledged.
        static let knowsAcks = Flags(rawValue: 131_072)
        /// Only what can turn its denial is being read.
        static let shortWay = Flags(rawValue: 262_144)
        /// Its mark said so, as read on the short way.
        static let wasFinished = Flags(rawValue: 524_288)
        /// Repeats of this pair wait for its end.
        static let holdsPair = Flags(rawValue: 256)
    }

    struct Suspect {
        var device: String
        var connectionEpoch: Int64
    }

    init(event: EventJob, uid: String) {
        self.event = event
        recipient = Recipient(uid: uid)
    }

    func tag(_ stage: Tag.Stage, _ index: Int = 0) -> UInt64 {
        Tag(slot: slot, generation: generation, stage: stage, index: UInt8(truncatingIfNeeded: index)).bits
    }

    var ref: JobRef { JobRef(slot: slot, generation: generation) }

    /// What a repeat of the event has in common with it: app, user, message and kind.
    private(set) lazy var pair = pushIDPrefix.id()

    /// Hash prefix shared by all push ids of this recipient.
    private(set) lazy var pushIDPrefix = PushIDPrefix(
        app: event.app.id, uid: recipient.uid, msgID: event.subject.id, kind: event.subject.kind.rawValue)

    var isForced: Bool { flags.contains(.forced) }

    /// The device is in its lane or with the APNs client; false too of one that is known no more.
    func isPushing(_ index: Int) -> Bool { index < devices.count && devices[index].state == .pushing }

    /// The device waits for the end of its burst's window; false too of one that is known no more.
    func isMerging(_ index: Int) -> Bool { index < devices.count && devices[index].isMerging }

    /// The earliest time at which an ack is due (monotonic); nil: none is wanted.
    var earliestAckNanos: UInt64? {
        var earliest: UInt64?
        for device in devices {
            guard case .awaitingAck(let due) = device.state else { continue }
            earliest = min(earliest ?? .max, due)
        }
        return earliest
    }

    /// All its devices ended and only this is left to do: what they were needed for goes.
    func keepOnly(_ mark: PreparedCommand) {
        self.mark = mark
        devices = []
        trace = nil
    }

    /// The device ended in this or an earlier round, or something for it is out: another route would be a second alert.
    func isTaken(_ device: String) -> Bool {
        devices.contains { $0.route.device == device && $0.state != .superseded }
            || claim?.acceptedDevices.contains(device) ?? false
    }
}

/// A job by its slot; finds nothing once the job is done.
struct JobRef {
    var slot: Int
    var generation: UInt32
}

/// Where a delivery goes; of pushes there are many more, so it has a place of its own.
final class LiveConnection {
    let device: String
    let gateway: String
    let epoch: Int64
    let isDesktop: Bool

    init(_ presence: DevicePresence) {
        device = presence.device
        gateway = presence.gateway
        epoch = presence.connectionEpoch
        isDesktop = presence.platform.isDesktop
    }
}

/// One device of a recipient on its way to an end.
struct DeviceWork {
    var route: Route
    var state = State.idle
    /// What is pushed to; kept here because a later round reads the recipient anew.
    var token: BoundToken?
    /// The connection that a delivery goes to.
    var connection: LiveConnection?
    /// Set when the push is made; the same for every attempt.
    var pushID: PushID?
    /// It had acknowledged before it was sent to: in an earlier try, or after its deadline.
    var isAcknowledged = false
    /// The APNs client has its push, or none will come.
    var isSent = false
    /// APNs wants the device left alone, so its push waits without its lane: a newer one may take its place.
    var isHeld = false
    /// The number that the push carries.
    var badge: Int64?
    var startedNanos: UInt64 = 0
    /// When Redis last said that nothing stands against this push.
    var checkedNanos: UInt64 = 0
    /// A last look under way.
    var look: LastLook?
    /// The messages that its push tells of beside its own.
    var merged: MergedPush?

    /// Waits for the end of its burst's window.
    var isMerging: Bool { state == .merging }

    /// On its way to nowhere yet: an ack, a desktop or the end of a burst is waited for.
    var isWaiting: Bool {
        switch state {
        case .idle, .awaitingAck, .held, .merging: true
        case .pushing, .superseded, .ended: false
        }
    }

    enum State: Equatable {
        case idle
        /// In a device lane or with the APNs client.
        case pushing
        /// Delivered over the connection; the ack is due by then (monotonic).
        case awaitingAck(dueNanos: UInt64)
        /// Waits for a desktop.
        case held
        /// Waits for the end of its burst's window, or for the outcome of the push that tells of it.
        case merging
        /// A later round has another route for it.
        case superseded
        case ended
    }
}
