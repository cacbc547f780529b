/// What would become of an event for one user and one of his devices, with every step that led there.
///
/// Plain values: nothing was sent, claimed or changed for them.
public struct Explanation: Sendable, Equatable {
    /// One step of contract section 5.
    public struct Step: Sendable, Equatable {
        /// As numbered there.
        public var number: Int
        /// A word or two for people.
        public var name: String
        /// The facts that it looked at; tokens only as ``TokenHash``.
        public var input: String
        public var outcome: String
        /// False: this step is why there is no alert.
        public var passes: Bool

        public init(_ number: Int, _ name: String, input: String, outcome: String, passes: Bool = true) {
            self.number = number
            self.name = name
            self.input = input
            self.outcome = outcome
            self.passes = passes
        }
    }

    /// The way to the device.
    public enum Way: String, Sendable {
        case apns, connection, none
    }

    /// Empty where the record names nobody: a bad one, or one that expired before its members were read.
    public var uid: String
    /// Nil: this is about the user as a whole.
    public var device: String?
    public var route: Way
    /// The verdict of `push.results` if APNs accepts and connections acknowledge; besides these `dead_letter` for a
    /// bad record, `state_change` for one that only changes state and `duplicate` for a finished one.
    public var verdict: String
    public var reason: String
    public var steps: [Step]
    /// The bytes that a push would carry.
    public var payload: [UInt8]?
    /// The `apns-*` headers that a push would carry.
    public var headers: [Header]

    public struct Header: Sendable, Equatable {
        public var name: String
        public var value: String
    }

    public init(
        uid: String, device: String? = nil, route: Way = .none, verdict: String, reason: String, steps: [Step],
        payload: [UInt8]? = nil, headers: [Header] = []
    ) {
        self.uid = uid
        self.device = device
        self.route = route
        self.verdict = verdict
        self.reason = reason
        self.steps = steps
        self.payload = payload
        self.headers = headers
    }
}

extension Explanation {
    /// All was done before: nothing more.
    static func duplicate(_ uid: String, device: String? = nil, _ steps: [Step]) -> Explanation {
        Explanation(uid: uid, device: device, verdict: "duplicate", reason: "duplicate", steps: steps)
    }
}

/// All explanations of one record.
public struct RecordExplanation: Sendable, Equatable {
    /// `message m-1 of im` or the like; nil for a bad record.
    public var title: String?
    public var explanations: [Explanation]
    /// The group has more members than were asked for.
    public var isCut = false
}
