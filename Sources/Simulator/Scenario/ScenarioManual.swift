// SPDX-License-Identifier: Apache-2.0
/// Every key of a scenario file with its meaning. The reader accepts these keys, `--help` prints them, and the manual
/// must name them.
public struct ScenarioManual: Sendable {
    /// One key, the form of its value, and its effect.
    public struct Key: Sendable {
        public let name: String
        public let value: String
        public let meaning: String

        init(_ name: String, _ value: String, _ meaning: String) {
            self.name = name
            self.value = value
            self.meaning = meaning
        }
    }

    /// The section of these keys: `scenario`, `connection`, …; for a fault `fault goaway`.
    public let title: String
    public let keys: [Key]

    init(_ title: String, _ keys: [Key]) {
        self.title = title
        self.keys = keys
    }

    /// The keys that the reader accepts in one section.
    static func names(_ title: String) -> [String] {
        all.first { $0.title == title }?.keys.map(\.name) ?? []
    }

    /// The whole manual as plain text.
    public static var text: String {
        var text = ""
        for section in all {
            text += "  \(section.title)\n"
            for key in section.keys {
                let head = "\(key.name) \(key.value)"
                let space = String(repeating: " ", count: max(1, 30 - head.count))
                text += "    \(head)\(space)\(key.meaning)\n"
            }
        }
        return text
    }

    /// All sections.
    public static let all = top + conditions + answers + faults + connectFaults

    private static let top = [
        ScenarioManual(
            "scenario",
            [
                Key("seed", "N", "makes every share repeatable (1)"),
                Key("connection", "{…}", "limits and timing of connections"),
                Key(
                    "on_connect", "[{match, fault}]",
                    "faults of a connection after its TLS handshake; the first match counts"),
                Key(
                    "rules", "[{match, answer|fault}]",
                    "results of requests that pass Apple's checks; the first match counts"),
                Key("settings", "[{…}]", "SETTINGS announced at a time since the start"),
                Key(
                    "goaway_after_requests", "N",
                    "each connection sends GOAWAY after N requests and answers all of them"),
                Key("goaway_every_s", "S", "all connections send GOAWAY every S seconds"),
            ]),
        ScenarioManual(
            "connection",
            [
                Key("rtt_ms", "MS", "round trip added to all output, window updates included (0)"),
                Key("window", "BYTES", "window for all bodies of a connection, 65535 or more (65535)"),
                Key("returns_window", "BOOL", "false: that window is never given back (true)"),
                Key("streams", "N", "streams allowed (1000)"),
                Key("streams_at_start", "N", "streams allowed until the first accepted token (1)"),
                Key("shrink_on_rejection", "BOOL", "one stream after a rejection, until the next acceptance (false)"),
                Key("header_table", "BYTES", "HPACK table offered (4096)"),
                Key("token_throttle", "{…}", "429 TooManyProviderTokenUpdates"),
            ]),
        ScenarioManual(
            "token_throttle",
            [
                Key("scope", "connection|key", "counts changes on one connection, or new tokens of a team's key"),
                Key("min_s", "S", "least time between two (1200)"),
                Key("wedge", "BOOL", "the connection is silent afterwards (false)"),
            ]),
        ScenarioManual(
            "settings",
            [
                Key("after_s", "S", "since the start (0)"),
                Key("max_concurrent_streams", "N", "the limit from then on (1000)"),
            ]),
        ScenarioManual(
            "rule",
            [
                Key("match", "{…}", "conditions; absent: always"), Key("answer", "{…}", "an answer"),
                Key("fault", "{…}", "or a fault in its place"),
            ]),
        ScenarioManual(
            "on_connect rule",
            [
                Key("match", "{…}", "conditions; absent: always"), Key("fault", "{…}", "a fault of a connection"),
            ]),
    ]

    private static let conditions = [
        ScenarioManual("match", request + common),
        ScenarioManual("on_connect match", common),
    ]

    private static let request = [
        Key("token", "HEX", "the device token begins with HEX"),
        Key("topic", "TOPIC", "apns-topic is this"),
        Key("push_type", "TYPE", "apns-push-type is this"),
    ]

    private static let common = [
        Key("connection", "N", "it is the connection with this number, from 1"),
        Key("share", "0…1", "this share of the matching requests, drawn by the seed"),
        Key("every", "N", "every N-th of the matching requests"),
        Key("skip", "N", "not the first N"),
        Key("count", "N", "at most N"),
        Key("after_s", "S", "not before, since the start"),
        Key("until_s", "S", "not from then on"),
    ]

    private static let answers = [
        ScenarioManual(
            "answer",
            [
                Key("status", "200…599", "the status (200)"),
                Key("reason", "TEXT", "the body's reason, known to Apple or not"),
                Key("timestamp", "MS", "the body's timestamp"),
                Key("retry_after", "S", "a retry-after header"),
                Key("retry_after_date", "BOOL", "true: the header is the date in S seconds"),
                Key("delay_ms", "MS", "the answer is so late"),
                Key("body", "TEXT", "this body, sound or not, in place of Apple's JSON; empty: none at all"),
                Key("body_bytes", "N", "Apple's JSON, padded to N bytes"),
                Key("split_bytes", "N", "the body in DATA frames of at most N bytes"),
            ])
    ]

    private static let kind = Key("kind", "KIND", "the fault's name, as above")

    private static let faults = [
        ScenarioManual("fault refuse_stream", [kind]),
        ScenarioManual(
            "fault reset", [kind, Key("code", "CODE", "RST_STREAM's code by name or number (INTERNAL_ERROR)")]),
        ScenarioManual(
            "fault goaway",
            [
                kind,
                Key("last", "none|before|this", "the last stream named: 0, the one before, this one (before)"),
                Key("code", "CODE", "error code by name or number (NO_ERROR)"),
                Key("reason", "TEXT", "Apple's debug JSON with this reason"),
                Key("twice", "BOOL", "first a GOAWAY that names 2^31-1, then this one (false)"),
            ]),
        ScenarioManual(
            "fault close",
            [kind, Key("how", "clean|record|reset", "with close_notify, within a TLS record, by TCP RST (clean)")]),
        ScenarioManual(
            "fault freeze",
            [
                kind,
                Key(
                    "scope", "connection|stream",
                    "nothing read or written any more; this stream unanswered (connection)"),
            ]),
        ScenarioManual(
            "fault drip",
            [
                kind, Key("bytes", "N", "the connection's output goes out in pieces of N bytes (1)"),
                Key("every_ms", "MS", "one piece that often (50); the request is accepted"),
            ]),
        ScenarioManual(
            "fault flood",
            [
                kind, Key("frame", "settings|ping", "of which frame (ping)"),
                Key("count", "N", "N at once (1000); the request is accepted"),
            ]),
        ScenarioManual(
            "fault bytes", [kind, Key("hex", "HEX", "raw bytes into the stream of frames; the request is accepted")]),
    ]

    private static let connectFaults = [
        ScenarioManual("on_connect fault close", [kind]),
        ScenarioManual("on_connect fault break", [kind]),
        ScenarioManual("on_connect fault mute", [kind]),
        ScenarioManual(
            "on_connect fault goaway",
            [
                kind, Key("code", "CODE", "error code by name or number (NO_ERROR)"),
                Key("reason", "TEXT", "Apple's debug JSON with this reason"),
            ]),
        ScenarioManual(
            "on_connect fault bytes", [kind, Key("hex", "HEX", "raw bytes in place of SETTINGS, then the end")]),
    ]
}
