// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet
import SimulatedSystem

/// Writes the records of one episode, each at its time, and collects its claims.
final class Cast {
    let name: String
    let uid: String
    let app: AppSettings
    /// A broadcast channel of the app.
    let channel: String
    private let traffic: Traffic
    private let system: SimulatedSystem
    /// When all wall clocks go forward, and by how many hours; nil in most worlds.
    private let leap: (nanos: UInt64, hours: Int64)?
    /// Gateways and the backend write to Redis.
    private let redis: ([String]) -> Void
    private(set) var claims: [Episode.Claim] = []
    /// The time of the next step, from now.
    private(set) var nanos: UInt64
    private var sequences: [String: Int64] = [:]
    private var version: Int64 = 100
    private static let second = 1_000_000_000.0
    /// Seconds. The first request of a connection may be one that APNs answers late; then another connection is opened.
    static let atOnce = 0.0...3.0

    init(
        _ name: String, uid: String, app: AppSettings, channel: String, _ traffic: Traffic, startNanos: UInt64,
        leap: (nanos: UInt64, hours: Int64)? = nil, redis: @escaping ([String]) -> Void
    ) {
        self.name = name
        self.uid = uid
        self.app = app
        self.channel = channel
        self.traffic = traffic
        system = traffic.system
        nanos = startNanos
        self.leap = leap
        self.redis = redis
    }

    var conversation: String { "c-\(uid)" }
    /// The texts in the app's default language.
    var texts: SimulatedTexts { SimulatedTexts.of(app.defaultLanguage) }
    /// The texts in the other language.
    var otherTexts: SimulatedTexts { app.defaultLanguage == "en" ? .chinese : .english }
    /// The app's `prefix` with the sender's name.
    var prefix: String { app.prefix.0 + "N" + app.prefix.1 }
    /// Another user of the episode.
    func other(_ letter: String) -> String { uid + letter }

    // MARK: Time

    func wait(_ seconds: Double) { nanos += UInt64(seconds * Self.second) }

    /// Waits until the wall clocks have gone forward.
    ///
    /// - Returns: by how many hours.
    func waitLong() -> Int64 {
        guard let leap else { return 0 }
        nanos = max(nanos, leap.nanos + UInt64(2 * Self.second))
        return leap.hours
    }

    /// Unix ms of the world so many seconds from the next step.
    ///
    /// The next one is a moment later: of two at one time the seed chooses the first.
    private func at(_ body: @escaping () -> Void) {
        system.after(nanos: nanos, body)
        nanos += 2_000_000
    }

    func claim(_ claim: Episode.Claim) { claims.append(claim) }

    // MARK: User state

    /// - Parameter fields: its members but for the common ones. `NOW` in it is the time of writing, Unix ms; `NOW-5` is 5 s before.
    @discardableResult
    func change(
        _ kind: String, _ fields: String, of user: String? = nil, sent seconds: Double = 0, note: SentNote = SentNote()
    ) -> SentNote {
        let uid = user ?? uid
        at { [traffic, system] in
            traffic.writeOfEpisode(
                note, kind: kind, uid: uid, sentMs: system.wallMs + Int64(seconds * 1000),
                Self.filled(fields, system.wallMs))
        }
        return note
    }

    /// Returns the token.
    @discardableResult
    func bind(
        _ device: String = "p", _ answer: Episode.Token = .plain, type: String = "alert", token given: String? = nil,
        version: Int64? = nil, of user: String? = nil, note: SentNote? = nil, more: String = "", sent: Double = 0
    ) -> String {
        self.version += 1
        let token = given ?? traffic.makeToken(answer.rawValue)
        change(
            "bind",
            "\"token\":{\"device\":\"\(device)\",\"token\":\"\(token)\",\"env\":\"production\","
                + "\"topic\":\"com.example.\(app.id)\",\"type\":\"\(type)\",\"bind_ver\":\(version ?? self.version)\(more)}",
            of: user, sent: sent, note: note ?? SentNote())
        return token
    }

    @discardableResult
    func unbind(_ device: String, token: String, version: Int64, of user: String? = nil) -> SentNote {
        change(
            "unbind", "\"token\":{\"device\":\"\(device)\",\"token\":\"\(token)\",\"bind_ver\":\(version)}", of: user)
    }

    @discardableResult
    func settings(_ fields: String) -> SentNote { change("settings", fields) }

    func ack(_ device: String, _ note: SentNote) {
        at { [traffic, system, uid] in
            traffic.writeOfEpisode(
                SentNote(), kind: "ack", uid: uid, sentMs: system.wallMs,
                "\"device\":\"\(device)\",\"msg_ids\":[\"\(note.messageID)\"]")
        }
    }

    // MARK: Gateways

    /// Presence, by a gateway that never fails.
    func connect(
        _ device: String, _ platform: String = "ios", _ state: String = "fg", open: String = "-", local: Bool = false,
        sinceSeconds: Double = 0, epoch: Int64 = 1, connection: Int64 = 7, of user: String? = nil
    ) {
        at { [redis, system, app, uid] in
            redis(["SET", "gw:{gw-kit}", "1", "EX", "900"])
            let since = state == "bg" ? "\(system.wallMs - Int64(sinceSeconds * 1000))" : "-"
            let key = "p:{\(app.id):\(user ?? uid)}"
            redis([
                "HSET", key, device,
                "\(state),\(platform),gw-kit,\(epoch),\(connection),\(system.wallMs),\(since),\(open),\(local ? "l" : "-")",
            ])
            redis(["EXPIRE", key, "180"])
        }
    }

    /// The members of a group with their levels.
    func group(_ id: String, _ levels: [(String, Int)]) {
        at { [redis, app] in
            redis(["HSET", "g:{\(app.id):\(id)}"] + levels.flatMap { [$0.0, "\($0.1)"] })
        }
    }

    // MARK: Events

    /// - Parameters:
    ///   - push: the members of `push`; nil: a content.
    ///   - more: further members of the record; of two with one name the later counts.
    ///   - id: gives the `msg_id`; nil: it has one of its own.
    @discardableResult
    func message(
        _ push: String? = nil, kind: String = "message", conv: String? = nil, type: String = "p2p",
        uids: [String]? = nil,
        to: String? = nil, seq: Int64? = nil, from: String = "\"uid\":\"peer\",\"nick\":\"N\"", more: String = "",
        id: SentNote? = nil, sent seconds: Double = 0
    ) -> SentNote {
        let note = SentNote()
        let conversation = conv ?? conversation
        sequences[conversation, default: 0] += 1
        let number = seq ?? sequences[conversation, default: 0]
        let isGroup = type == "group" || type == "ultra"
        let named = uids ?? (isGroup ? nil : [uid])
        at { [traffic, system] in
            var fields = ",\"server_seq\":\(number),\"conv\":{\"id\":\"\(conversation)\",\"type\":\"\(type)\"}"
            fields += ",\"from\":{\(from)}"
            if let to {
                fields += ",\"to\":{\(to)}"
            } else if let named {
                fields += ",\"to\":{\"uids\":\(PushWords.list(named))}"
            }
            fields += ",\"push\":{\(push ?? "\"content\":\"words\"")}" + more
            traffic.sendOfEpisode(
                note, kind: kind, conversation: conversation, messageID: id?.messageID,
                sentMs: system.wallMs + Int64(seconds * 1000), Self.filled(fields, system.wallMs))
        }
        return note
    }

    @discardableResult
    func revoke(_ target: SentNote, _ badge: String? = nil, push: String = "") -> SentNote {
        let note = SentNote()
        let uid = uid
        at { [traffic, system] in
            let effect = badge.map { ",\"badge\":\"\($0)\"" } ?? ""
            traffic.sendOfEpisode(
                note, kind: "revoke", conversation: target.conversation, messageID: nil, sentMs: system.wallMs,
                ",\"conv\":{\"id\":\"\(target.conversation)\",\"type\":\"p2p\"},\"from\":{\"uid\":\"peer\",\"nick\":\"N\"},"
                    + "\"to\":{\"uids\":[\"\(uid)\"]},\"push\":{\(push)},"
                    + "\"revoke\":{\"target_msg_id\":\"\(target.messageID)\"\(effect)}")
        }
        return note
    }

    @discardableResult
    func activity(
        _ id: String, _ event: String, more: String = "", uids: [String]? = nil, isToAll: Bool = false
    ) -> SentNote {
        let note = SentNote()
        let users = uids ?? [uid]
        at { [traffic, system] in
            var fields = isToAll ? "" : ",\"to\":{\"uids\":\(PushWords.list(users))}"
            fields += ",\"la\":{\"activity_id\":\"\(id)\",\"event\":\"\(event)\",\"state\":{\"at\":\"\(id)\"}"
            if event == "start" {
                fields +=
                    ",\"attributes_type\":\"Ride\",\"attributes\":{\"a\":1},\"alert\":{\"title\":\"T\",\"body\":\"B\"}"
            }
            traffic.sendOfEpisode(
                note, kind: "live_activity", conversation: id, messageID: nil, sentMs: system.wallMs,
                fields + Self.filled(more, system.wallMs) + "}")
        }
        return note
    }

    /// A record that no reader can use.
    func bad(_ words: String, topic: String = "im.events", _ value: String) {
        let note = SentNote()
        at { [traffic, system] in traffic.writeBad(note, topic: topic, Self.filled(value, system.wallMs)) }
        claims.append(.deadLetter(note, words))
    }

    /// `NOW` and `NOW-5` become times.
    private static func filled(_ text: String, _ nowMs: Int64) -> String {
        guard text.contains("NOW") else { return text }
        var filled = ""
        var rest = text[...]
        while let place = rest.range(of: "NOW") {
            filled += rest[..<place.lowerBound]
            rest = rest[place.upperBound...]
            var shift: Int64 = 0
            if let sign = rest.first, sign == "-" || sign == "+" {
                let digits = rest.dropFirst().prefix { $0.isNumber }
                if let seconds = Int64(digits) {
                    shift = (sign == "-" ? -1000 : 1000) * seconds
                    rest = rest.dropFirst(1 + digits.count)
                }
            }
            filled += "\(nowMs + shift)"
        }
        return filled + rest
    }
}

extension Substring {
    /// The first place of the text; no Foundation here.
    fileprivate func range(of text: String) -> Range<Index>? {
        var place = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(text) { return place..<index(place, offsetBy: text.count) }
            place = index(after: place)
        }
        return nil
    }
}
