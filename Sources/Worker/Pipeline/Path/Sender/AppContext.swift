// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import Payload
import PushCore
import Telemetry

/// An app's rules and texts, which a reload replaces together. They are constants, so that a use copies nothing: a copy of the
/// policy costs 400 instructions.
final class AppRules {
    let policy: AppPolicy
    /// The payload's part of it.
    let payload: PayloadRules
    let templates: Templates

    init(_ policy: AppPolicy, _ templates: Templates) {
        self.policy = policy
        payload = PayloadRules(policy)
        self.templates = templates
    }
}

/// One app within one shard: its rules and texts, its APNs clients, its metrics.
///
/// A client serves one (environment, credential): another team or key never shares a connection (Apple).
final class AppContext {
    let id: String
    private(set) var rules: AppRules
    var policy: AppPolicy { rules.policy }
    var templates: Templates { rules.templates }
    let metrics: AppMetrics
    /// `limits.background_per_hour`; 0 for no limit.
    var backgroundPerHour: Int
    /// The length of a burst's window; 0 sends every alert at once.
    private(set) var coalesceNanos: UInt64
    /// `dnd_digest`.
    private(set) var sendsDigest: Bool
    private(set) var clients: [Client] = []
    var inHand: AppInHand
    var rate: RateBucket
    var brake: RemovalBrake
    /// Which pushes use separate connections.
    private(set) var suspects: SuspectRule
    private var pushTopics: [(bundleID: String, value: PushTopic)] = []
    /// Devices with a push that waits for the rate, oldest first.
    var paced: [DeviceRef] = []

    /// An APNs client and the devices that wait for room in it.
    final class Client {
        let environment: APNsEnvironment
        /// The name of the credential set, for a bind's `cert`.
        let credential: String
        /// `MarkCounts.short` of that name.
        let short: UInt8
        let apns: APNsClient
        /// For the app's own environment: connected at start. The other one connects with its first push.
        let isDefault: Bool
        /// Not a certificate.
        let usesProviderKey: Bool
        /// Devices with a push that was refused for lack of room, oldest first.
        var stalled: [DeviceRef] = []
        /// Since when only probes are sent while pushes wait, monotonic; nil in normal operation.
        var heldUpNanos: UInt64?
        /// Parked pushes begun for it since the last check, to find out whether its problem is over.
        var probesBegun = 0

        /// The name in parked records.
        var name: String { "\(environment.rawValue)/\(credential)" }

        /// Once a second.
        func noteHeldUp(nowNanos: UInt64) {
            if !apns.isHeldUp {
                heldUpNanos = nil
            } else if heldUpNanos == nil, apns.queued > 0 {
                heldUpNanos = nowNanos
            }
        }

        /// Long enough that its pushes are parked.
        func isInTrouble(_ limits: PipelineLimits, nowNanos: UInt64) -> Bool {
            guard let heldUpNanos, apns.isHeldUp else { return false }
            return nowNanos &- heldUpNanos >= limits.troubleNanos
        }

        /// The reason for parking its pushes.
        var trouble: ParkCause {
            apns.credentialPause == nil && !apns.lacksCredential ? .unavailable : .credential
        }

        init(
            environment: APNsEnvironment, credential: String, apns: APNsClient, isDefault: Bool, usesProviderKey: Bool
        ) {
            self.environment = environment
            self.credential = credential
            short = MarkCounts.short(credential)
            self.apns = apns
            self.isDefault = isDefault
            self.usesProviderKey = usesProviderKey
        }
    }

    /// - Parameters:
    ///   - rate: pushes per second of this shard; 0 for no limit.
    ///   - share: `limits.share`.
    init(
        policy: AppPolicy, templates: Templates, metrics: AppMetrics, rate: Double, coalesceNanos: UInt64,
        sendsDigest: Bool, removals: RemovalBrake.Limits, suspects: SuspectRule = SuspectRule(), share: Double = 0.5,
        backgroundPerHour: Int = 0, clients: [Client]
    ) {
        inHand = AppInHand(share: share)
        self.rate = RateBucket(perSecond: rate)
        brake = RemovalBrake(removals)
        self.suspects = suspects
        id = policy.id
        rules = AppRules(policy, templates)
        self.metrics = metrics
        self.backgroundPerHour = backgroundPerHour
        self.coalesceNanos = coalesceNanos
        self.sendsDigest = sendsDigest
        self.clients = clients
    }

    /// Applies a reload's changes (`ConfigurationChange`). Work in progress uses them from its next step on.
    ///
    /// - Parameter shardCount: `limits.rate` is that of all shards.
    func apply(_ app: Configuration.App, shardCount: Int) {
        rules = AppRules(app.policy, app.templates)
        backgroundPerHour = app.limits.backgroundPerHour
        coalesceNanos = app.coalesceNanos
        sendsDigest = app.sendsDigest
        suspects = app.limits.suspects
        inHand.share = app.limits.share
        brake.change(app.limits.removals)
        rate.change(perSecond: Double(app.limits.rate) / Double(shardCount))
    }

    func connect(delegate: any APNsClientDelegate) {
        for client in clients {
            client.apns.delegate = delegate
            if client.isDefault { client.apns.start() }
        }
    }

    /// The common part of all pushes to a bundle id's tokens of one type and priority; nil if the topic is invalid in a
    /// header.
    ///
    /// Topics come with tokens, so there are as many as the app has bundle ids. Beyond a bound they are created each
    /// time.
    func pushTopic(_ bundleID: String, _ type: PushType, _ priority: PushPriority) -> PushTopic? {
        for known in pushTopics
        where known.value.priority == priority && known.value.pushType == type && known.bundleID == bundleID {
            return known.value
        }
        guard let value = try? PushTopic(type.topic(bundleID: bundleID), pushType: type, priority: priority) else {
            return nil
        }
        if pushTopics.count < 64 { pushTopics.append((bundleID, value)) }
        return value
    }

    /// The name of the credential set of one of its clients.
    func credential(of apns: APNsClient) -> String? {
        for client in clients where client.apns === apns { return client.credential }
        return nil
    }

    /// A broadcast channel as the token of a device: the clients, their lanes and their retries know no other.
    func token(ofChannel channel: String, _ environment: APNsEnvironment? = nil, sentMs: Int64) -> BoundToken {
        BoundToken(
            device: channel,
            record: TokenRecord(
                hex: Hex.string(Array(channel.utf8)),
                environment: environment ?? clients.first { $0.isDefault }?.environment ?? .production,
                topic: policy.topic, type: .activity, boundMs: sentMs), version: 0)
    }

    /// The client of that `Client.name`.
    func client(named name: String) -> Client? { clients.first { $0.name == name } }

    /// Pushes that wait for streams. A client with a problem does not count: its pushes wait in their slots, and the
    /// others continue.
    var pushesAhead: Int {
        var count = 0
        for client in clients where !client.apns.isHeldUp { count += client.apns.waiting }
        return count
    }

    /// The client for a token: of its environment, with the credential set that is chosen for it.
    func client(for token: BoundToken) -> Client? {
        let environment = token.record.environment
        return clients.lazy.filter { $0.environment == environment }.choice(for: token.record)
    }
}
