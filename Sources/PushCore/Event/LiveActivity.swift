// SPDX-License-Identifier: Apache-2.0
/// A `live_activity` record (contract section 2; Apple: "Starting and updating Live Activities with ActivityKit push
/// notifications").
public struct LiveActivity: Sendable {
    public var msgID: String?
    /// The given recipients; empty if `isForAllBound`.
    public var uids: [String]
    /// The record names no users: an update or end goes to all users who bound the activity (at most
    /// `LiveActivity.boundUsersMax`).
    public var isForAllBound: Bool
    public var activityID: String
    public var action: Action
    /// `content-state`, an `.object`.
    public var state: JSONValue
    public var attributesType: String?
    public var attributes: JSONValue?
    public var alert: JSONValue?
    public var staleMs: Int64?
    public var dismissalMs: Int64?
    /// `relevance-score`, unchanged text.
    public var relevance: String?
    public var priority: PushOptions.Priority
    /// How the device gets the updates of an activity that this record starts.
    public var input: Input
    /// The broadcast channel of the app that the event goes to instead of to users; nil: to users.
    public var channel: String?

    /// The source of updates (iOS 18 and later; older systems ignore it).
    public enum Input: Sendable, Equatable {
        /// As the app requested from ActivityKit.
        case unsaid
        /// By a separate token, which the app then reports: `input-push-token`.
        case token
        /// By broadcasts to a channel: `input-push-channel` with APNs' channel id.
        case channel(String)
    }

    public enum Action: String, Sendable {
        case start, update, end
    }

    public init(
        msgID: String? = nil, uids: [String], activityID: String, action: Action, state: JSONValue,
        attributesType: String? = nil, attributes: JSONValue? = nil, alert: JSONValue? = nil, staleMs: Int64? = nil,
        dismissalMs: Int64? = nil, relevance: String? = nil, priority: PushOptions.Priority = .high,
        input: Input = .unsaid, isForAllBound: Bool = false, channel: String? = nil
    ) {
        self.msgID = msgID
        self.uids = uids
        self.isForAllBound = isForAllBound
        self.channel = channel
        self.activityID = activityID
        self.action = action
        self.state = state
        self.attributesType = attributesType
        self.attributes = attributes
        self.alert = alert
        self.staleMs = staleMs
        self.dismissalMs = dismissalMs
        self.relevance = relevance
        self.priority = priority
        self.input = input
    }
}
