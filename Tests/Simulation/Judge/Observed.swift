/// What came out of the worker's interfaces, as an observer of the topics and of APNs sees it.
struct Observed {
    /// A record of `push.results`.
    struct Outcome {
        var atNanos: UInt64
        var eventID: String
        var uid: String
        /// Empty without device.
        var device: String
        var verdict: String
        var reason: String
        var pid: String
        var badge: Int64?

        var isFinal: Bool { verdict != "parked" }
        /// Without the time.
        var text: String { "\(device.isEmpty ? "no device" : device): \(verdict) \(reason) \(pid)" }
    }

    /// A request to APNs and its answer.
    struct Push {
        var atNanos: UInt64
        var token: String
        var pid: String
        var status: Int?
        /// APNs sent the answer.
        var isAnswered: Bool
        var badge: Int64?
        var messageID: String?
        var isAlert: Bool
        var app: String
    }

    var outcomes: [Outcome] = []
    var pushes: [Push] = []
    /// When the outcome of a user-state record was recorded, by its event id.
    var applied: [String: UInt64] = [:]
    var deadLetters: [String] = []
    var deliveries = 0
}

/// What a judge found.
public struct Violation: Equatable, Sendable {
    /// The rule, such as `one final outcome`.
    public let rule: String
    public let text: String
    /// The message or event that it is about; empty for none.
    public let message: String
}
