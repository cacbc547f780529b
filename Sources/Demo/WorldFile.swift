// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Processes

/// Presence and group members, as gateways and the IM backend would write them.
///
/// A group's entry may name another app. Times are relative to the time of writing: `"-5s"`, `"-15m"`.
struct WorldFile: Sendable {
    private let tree: JSONTree
    private let app: String

    init(_ bytes: [UInt8]) throws {
        tree = try JSONTree(parsing: bytes)
        guard let app = tree["app"]?.string else { throw SetupFault("world.json: \"app\" is missing") }
        self.app = app
    }

    /// The Redis commands of contract section 4 for this world, one per line.
    func commands(nowMs: Int64) throws -> [String] {
        var commands: [String] = []
        for gateway in tree["gateways"]?.array ?? [] {
            let id = gateway["id"]?.string ?? ""
            let seconds = gateway["ttl_s"]?.int ?? 10
            commands.append("SET \(Self.quoted("gw:{\(id)}")) \(gateway["epoch"]?.int ?? 1) EX \(seconds)")
        }
        for entry in tree["presence"]?.array ?? [] {
            func text(_ key: String) -> String { entry[key]?.string ?? "-" }
            let since = try entry["bg_since"]?.string.map { String(try Self.time($0, nowMs)) } ?? "-"
            let fields = [
                text("state"), text("platform"), text("gateway"), String(entry["gw_epoch"]?.int ?? 0),
                String(entry["conn_epoch"]?.int ?? 0), String(try Self.time(entry["last"]?.string ?? "0s", nowMs)),
                since,
                text("active_conv"), text("flags"),
            ]
            let words = ["p:{\(app):\(text("uid"))}", text("device"), fields.joined(separator: ",")]
            commands.append("HSET " + words.map(Self.quoted).joined(separator: " "))
        }
        for group in tree["groups"]?.array ?? [] {
            let key = Self.quoted("g:{\(group["app"]?.string ?? app):\(group["id"]?.string ?? "")}")
            var members = (group["members"]?.members ?? []).map { "\(Self.quoted($0.key)) \($0.value.int ?? 0)" }[...]
            while !members.isEmpty {
                commands.append("HSET \(key) \(members.prefix(Self.membersMax).joined(separator: " "))")
                members = members.dropFirst(Self.membersMax)
            }
        }
        return commands
    }

    /// Redis accepts inline commands of up to 64 KiB. This many members fit, whatever their names.
    private static let membersMax = 64

    /// Quotes a word of an inline command.
    private static func quoted(_ text: String) -> String {
        "\""
            + text.utf8.map { byte in
                (0x21...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
                    ? String(UnicodeScalar(byte)) : "\\x" + Hex.string([byte])
            }.joined() + "\""
    }

    private static func time(_ text: String, _ nowMs: Int64) throws -> Int64 {
        let units: [Character: Int64] = ["s": 1_000, "m": 60_000, "h": 3_600_000]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int64(text.dropLast()) else {
            throw SetupFault("world.json: \"\(text)\" is not a relative time like \"-5s\"")
        }
        return nowMs &+ number &* unit
    }
}
