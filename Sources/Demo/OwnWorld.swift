// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import JSON
public import Processes
import Recording

/// A user's own records from a file, with the surroundings that they need to run here.
///
/// The lines are events and user state in any mixture, plain or as `record` writes them. A named user who binds no
/// device in the file gets a generated one. The members of a group are the users of its app in the file, at most 200.
public struct OwnWorld: Sendable {
    /// In the order of their first lines; at least one.
    public let apps: [App]
    /// Records of user state, those of generated devices first.
    public let state: [[UInt8]]
    public let events: [[UInt8]]
    /// Users with a generated device.
    public let madeUp: Int
    /// In the form that ``WorldFile`` reads.
    let worldFile: [UInt8]

    public struct App: Equatable, Sendable {
        public var id: String
        /// The app's bundle ids.
        public var topics: [String]
    }

    private static let linesMax = 10_000
    private static let appsMax = 50
    private static let groupsMax = 1_000
    private static let membersMax = 200
    private static let stateKinds: Set = [
        "bind", "unbind", "settings", "mute", "read", "badge_report", "ack", "open_report", "arrived_report", "forget",
    ]

    /// - Parameter lines: the non-empty lines of the file.
    public init(_ lines: [[UInt8]]) throws(SetupFault) {
        guard lines.count <= Self.linesMax else {
            throw SetupFault("more than \(Self.linesMax) lines: carillon replay plays long files")
        }
        var survey = Survey()
        var (state, events): ([[UInt8]], [[UInt8]]) = ([], [])
        for (index, line) in lines.enumerated() {
            let value = RecordLine.value(in: line)
            guard let tree = try? JSONTree(parsing: value), let kind = tree["kind"]?.string else {
                events.append(value)
                continue
            }
            try survey.note(tree, kind: kind, line: index + 1)
            if Self.stateKinds.contains(kind) { state.append(value) } else { events.append(value) }
        }
        guard !events.isEmpty else { throw SetupFault("it contains no event") }
        guard !survey.apps.isEmpty else { throw SetupFault("no line names an app") }
        guard survey.apps.count <= Self.appsMax else { throw SetupFault("more than \(Self.appsMax) apps") }
        guard let oldestMs = survey.oldestMs else { throw SetupFault("no event has a sent_ms") }
        apps = survey.apps.map { app in
            App(id: app, topics: survey.topics[app] ?? ["com.example.demo"])
        }
        if let app = apps.dropFirst().first(where: { $0.topics.count > 1 }) {
            throw SetupFault("app \(app.id) binds to several bundle ids, only the first app of a file may do that here")
        }
        var made: [[UInt8]] = []
        for app in apps {
            let users = (survey.users[app.id] ?? []).subtracting(survey.bound[app.id] ?? [])
            for uid in users.sorted() {
                made.append(Self.bind(uid, of: app, sentMs: oldestMs - 1_000, number: made.count))
            }
        }
        madeUp = made.count
        self.state = made + state
        self.events = events
        worldFile = Self.worldFile(apps, survey)
    }

    /// The names in the lines. The worker refuses texts that the contract does not allow.
    private struct Survey {
        var apps: [String] = []
        var topics: [String: [String]] = [:]
        var users: [String: Set<String>] = [:]
        var bound: [String: Set<String>] = [:]
        var groups: [String: Set<String>] = [:]
        var oldestMs: Int64?

        /// Contract section 0, in bytes.
        private static let nameMax = 128

        mutating func note(_ tree: JSONTree, kind: String, line: Int) throws(SetupFault) {
            guard let app = tree["app"]?.string else { return }
            if !apps.contains(app) {
                // The app's id is written into this world's configuration.
                guard OwnWorld.isPlain(app, bytesMax: 64) else {
                    throw SetupFault("line \(line): an app id of letters, digits, - _ and . is required")
                }
                apps.append(app)
            }
            if let sentMs = tree["sent_ms"]?.int { oldestMs = min(oldestMs ?? sentMs, sentMs) }
            let lists = [tree["to"]?["uids"], tree["mention"]?["uids"], tree["push"]?["force"]?["uids"]]
            let named = lists.flatMap { $0?.array ?? [] } + [tree["uid"], tree["from"]?["uid"]].compactMap { $0 }
            for uid in named.compactMap(\.string) where (1...Self.nameMax).contains(uid.utf8.count) {
                users[app, default: []].insert(uid)
            }
            if kind == "bind" { try note(token: tree, app: app, line: line) }
            if tree["to"]?["uids"] == nil, let id = tree["conv"]?["id"]?.string,
                ["group", "ultra"].contains(tree["conv"]?["type"]?.string), (1...Self.nameMax).contains(id.utf8.count)
            {
                groups[app, default: []].insert(id)
            }
        }

        private mutating func note(token tree: JSONTree, app: String, line: Int) throws(SetupFault) {
            if let uid = tree["uid"]?.string, tree["token"]?["type"]?.string == "alert" {
                bound[app, default: []].insert(uid)
            }
            guard let topic = tree["token"]?["topic"]?.string, !(topics[app] ?? []).contains(topic) else { return }
            guard OwnWorld.isPlain(topic, bytesMax: 255) else {
                throw SetupFault("line \(line): a topic of letters, digits, - _ and . is required")
            }
            topics[app, default: []].append(topic)
        }
    }

    /// - Returns: whether the text has no special meaning in YAML.
    private static func isPlain(_ text: String, bytesMax: Int) -> Bool {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, bytes.count <= bytesMax, isLetter(first) else { return false }
        return bytes.allSatisfy { isLetter($0) || (48...57).contains($0) || Array("-_.".utf8).contains($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) }

    /// Binds a generated phone. Its token is always the same, and never one that the simulator rejects.
    private static func bind(_ uid: String, of app: App, sentMs: Int64, number: Int) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("v", 1 as Int64)
        writer.member("kind", "bind")
        writer.member("app", app.id)
        writer.member("event_id", "demo-bind-\(number)")
        writer.member("sent_ms", sentMs)
        writer.member("uid", uid)
        writer.key("token")
        writer.beginObject()
        writer.member("device", "made-up-iphone")
        writer.member("token", "0" + String(SHA256.hex(Array("\(app.id)/\(uid)".utf8)).dropFirst()))
        writer.member("env", "production")
        writer.member("topic", app.topics.first ?? "")
        writer.member("type", "alert")
        writer.member("bind_ver", 1 as Int64)
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }

    private static func worldFile(_ apps: [App], _ survey: Survey) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("app", apps[0].id)
        writer.key("groups")
        writer.beginArray()
        for app in apps {
            let members = (survey.users[app.id] ?? []).sorted().prefix(membersMax)
            for group in (survey.groups[app.id] ?? []).sorted().prefix(groupsMax) {
                writer.beginObject()
                writer.member("app", app.id)
                writer.member("id", group)
                writer.key("members")
                writer.beginObject()
                for uid in members {
                    writer.key(escaping: uid)
                    writer.int(0)
                }
                writer.endObject()
                writer.endObject()
            }
        }
        writer.endArray()
        writer.endObject()
        return writer.bytes
    }
}
