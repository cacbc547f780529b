// SPDX-License-Identifier: Apache-2.0
/// The predicted result of an event for one user and device, with every step.
///
/// Plain values: nothing was sent, claimed or changed.
public struct Explanation: Sendable, Equatable {
    /// One step of contract section 5.
    public struct Step: Sendable, Equatable {
        /// The number in the contract.
        public var number: Int
        /// One or two words for people.
        public var name: String
        /// The input of the step. Tokens appear only as ``TokenHash``.
        public var input: String
        public var outcome: String
        /// False if this step denies the alert.
        public var passes: Bool

        public init(_ number: Int, _ name: String, input: String, outcome: String, passes: Bool = true) {
            self.number = number
            self.name = name
            self.input = input
            self.outcome = outcome
            self.passes = passes
        }
    }

    /// The route to the device.
    public enum Way: String, Sendable {
        case apns, connection, none
    }

    /// Empty if the record has no recipients: a bad record, or one that expired before its members were read.
    public var uid: String
    /// Nil if it concerns the user as a whole.
    public var device: String?
    public var route: Way
    /// The verdict in `push.results` if APNs accepts and connections acknowledge. In addition `dead_letter` for a bad
    /// record, `state_change` for a user-state record, and `duplicate` for a finished event.
    public var verdict: String
    public var reason: String
    public var steps: [Step]
    /// The bytes of the push.
    public var payload: [UInt8]?
    /// The `apns-*` headers of the push.
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
    /// Everything was done before.
    static func duplicate(_ uid: String, device: String? = nil, _ steps: [Step]) -> Explanation {
        Explanation(uid: uid, device: device, verdict: "duplicate", reason: "duplicate", steps: steps)
    }
}

/// All explanations of one record.
public struct RecordExplanation: Sendable, Equatable {
    /// For example `message m-1 of im`; nil for a bad record.
    public var title: String?
    public var explanations: [Explanation]
    /// The group has more members than requested.
    public var isCut = false
    /// Fields of the record without an effect.
    public var unknownFields: [UnknownField] = []

    /// Whether the record goes to the dead letters.
    public var isBad: Bool { explanations.contains { $0.verdict == "dead_letter" } }
}
