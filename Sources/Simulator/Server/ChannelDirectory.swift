// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Crypto
import Digits
import JSON

/// Apple's side of broadcast channels: the existing channels and their policies.
///
/// Sources: "Sending channel management requests to APNs", "Sending broadcast push notification requests to APNs".
struct ChannelDirectory {
    /// The target of a request, by its path.
    enum Place: Equatable {
        case channels(app: String)
        case allChannels(app: String)
        case broadcast(app: String)

        /// - Returns: nil for a path of neither channels nor broadcasts.
        init?(path: ArraySlice<UInt8>) {
            let parts = path.split(separator: 0x2F, omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) }
            switch (parts.count, parts.dropFirst().first) {
            case (5, "1") where parts[2] == "apps" && parts[4] == "channels": self = .channels(app: parts[3])
            case (5, "1") where parts[2] == "apps" && parts[4] == "all-channels": self = .allChannels(app: parts[3])
            case (5, "4") where parts[2] == "broadcasts" && parts[3] == "apps": self = .broadcast(app: parts[4])
            default: return nil
            }
        }

        var app: String {
            switch self {
            case .channels(let app), .allChannels(let app), .broadcast(let app): app
            }
        }
    }

    /// The answer to a request for channels or a broadcast.
    struct Reply: Equatable {
        var status: Int
        var reason: String?
        var channel: String?
        var body: [UInt8] = []

        init(_ status: Int, _ reason: String? = nil) {
            self.status = status
            self.reason = reason
        }
    }

    /// "You can create up to 10,000 channels" per app and environment.
    static let channelsMax = 10_000

    /// Storage policy by app and channel.
    private var channels: [String: [String: Int64]] = [:]
    private var made: UInt64 = 0

    /// Checks a request with a valid token. `hasTopic`: the app exists.
    mutating func reply(
        _ place: Place, head: RequestHead, body: [UInt8], bytes: Int, isObject: Bool, isKnownApp: Bool
    ) -> Reply {
        guard isKnownApp else { return Reply(403, "TopicMismatch") }
        switch (place, head.text(.method)) {
        case (.channels(let app), "POST"): return create(app, body, isObject)
        case (.allChannels(let app), "GET"):
            return Self.object { writer in
                writer.key("channels")
                writer.beginArray()
                for channel in (channels[app] ?? [:]).keys.sorted() { writer.string(channel) }
                writer.endArray()
            }
        case (.channels(let app), "GET"), (.channels(let app), "DELETE"):
            guard let channel = head.text(.channelID), !channel.isEmpty else { return Reply(400, "MissingChannelId") }
            guard let policy = channels[app]?[channel] else { return Reply(400, Self.absence(channel)) }
            if head.text(.method) == "DELETE" {
                channels[app]?[channel] = nil
                return Reply(204)
            }
            return Self.object { writer in
                writer.member("message-storage-policy", policy)
                writer.member("push-type", "LiveActivity")
            }
        case (.broadcast(let app), "POST"): return send(app, head, bytes: bytes, isObject: isObject)
        default: return Reply(405, "MethodNotAllowed")
        }
    }

    private mutating func create(_ app: String, _ body: [UInt8], _ isObject: Bool) -> Reply {
        guard isObject, let tree = try? JSONTree(parsing: body) else { return Reply(400, "BadRequestPayload") }
        guard let type = tree["push-type"] else { return Reply(400, "MissingPushType") }
        guard type.string == "LiveActivity" else { return Reply(400, "InvalidPushType") }
        guard let policy = tree["message-storage-policy"]?.int, (0...1).contains(policy) else {
            return Reply(400, "BadRequestPayload")
        }
        guard channels[app, default: [:]].count < Self.channelsMax else {
            return Reply(400, "CannotCreateChannelConfig")
        }
        var reply = Reply(201)
        reply.channel = make(app, policy: policy)
        return reply
    }

    /// - Returns: the id of a new channel.
    mutating func make(_ app: String, policy: Int64) -> String {
        made += 1
        let name = "\(app) \(made)"
        let bytes = Base64URL.encode(SHA256.hash(Array(name.utf8)).prefix(15))
        // Fifteen bytes need no padding. Apple uses the standard alphabet.
        let channel = String(decoding: bytes.map { $0 == 0x2D ? 0x2B : $0 == 0x5F ? 0x2F : $0 }, as: UTF8.self)
        channels[app, default: [:]][channel] = policy
        return channel
    }

    private func send(_ app: String, _ head: RequestHead, bytes: Int, isObject: Bool) -> Reply {
        guard let channel = head.text(.channelID), !channel.isEmpty else { return Reply(400, "MissingChannelId") }
        guard let policy = channels[app]?[channel] else { return Reply(400, Self.absence(channel)) }
        guard head.text(.pushType) == "liveactivity" else { return Reply(400, "InvalidPushType") }
        guard head.text(.priority).map({ ["1", "5", "10"].contains($0) }) ?? true else {
            return Reply(400, "BadPriority")
        }
        guard let text = head.text(.expiration), let expiration = Int64(text), expiration >= 0,
            // "If you set the storage policy to No Message Stored, the expiration must be 0."
            policy == 1 || expiration == 0
        else { return Reply(400, "BadExpirationDate") }
        if bytes == 0 { return Reply(400, "PayloadEmpty") }
        if bytes > PushType.broadcastPayloadMax { return Reply(413, "PayloadTooLarge") }
        return isObject ? Reply(200) : Reply(400, "PayloadEmpty")
    }

    private static func absence(_ channel: String) -> String {
        let isBase64 = channel.utf8.allSatisfy {
            switch $0 {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F, 0x3D: true
            default: false
            }
        }
        return isBase64 ? "ChannelNotRegistered" : "BadChannelId"
    }

    private static func object(_ members: (inout JSONWriter) -> Void) -> Reply {
        var writer = JSONWriter()
        writer.beginObject()
        members(&writer)
        writer.endObject()
        var reply = Reply(200)
        reply.body = writer.bytes
        return reply
    }
}
