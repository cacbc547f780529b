// SPDX-License-Identifier: Apache-2.0
import Console
import JSON
import Recording

/// Commands to try with a kept demo, ready to copy.
struct DemoHints {
    /// This program, as it can be called from any folder.
    var program: String
    /// The kept configuration.
    var configuration: String
    /// Port of the operator's pages.
    var port: UInt16
    /// A user with a device that got a push.
    var subject: Subject
    /// A file with an event that has not been sent yet.
    var eventFile: String

    struct Subject: Equatable {
        var app: String
        var uid: String
        var msgID: String
        /// Nil if the file binds no token of this user.
        var token: String?
    }

    /// The first accepted push, and its event with new ids; nil if no push was accepted.
    static func choose(_ outcomes: [EventOutcome], state: [[UInt8]], nowMs: Int64) -> (
        subject: Subject, event: [UInt8]
    )? {
        for outcome in outcomes {
            guard let device = outcome.results.first(where: { $0.verdict == "accepted" && $0.device != nil }),
                let app = outcome.event["app"]?.string, let msgID = outcome.event["msg_id"]?.string
            else { continue }
            let seq = outcome.event["server_seq"]?.int
            let fresh = FreshIDs(tag: "try", pass: 0, seqs: seq.map { $0...$0 }, startMs: nowMs)
            let subject = Subject(
                app: app, uid: device.uid, msgID: msgID, token: token(of: device.uid, app: app, in: state))
            return (subject, fresh.apply(to: outcome.event).bytes)
        }
        return nil
    }

    /// A path relative to this folder becomes absolute. A name without a folder is found on `PATH`.
    static func callable(_ program: String) -> String {
        program.utf8.contains(UInt8(ascii: "/")) ? Files.absolute(program) ?? program : program
    }

    private static func token(of uid: String, app: String, in state: [[UInt8]]) -> String? {
        state.lazy.compactMap { try? JSONTree(parsing: $0) }.first { tree in
            tree["kind"]?.string == "bind" && tree["uid"]?.string == uid && tree["app"]?.string == app
                && tree["token"]?["type"]?.string == "alert" && tree["token"]?["env"]?.string == "production"
        }?["token"]?["token"]?.string
    }

    /// Each command with its purpose.
    var commands: [(what: String, command: String)] {
        let config = "--config \(Self.quoted(configuration))"
        let own = "\(Self.quoted(program))"
        let user = "--app \(Self.quoted(subject.app)) --user \(Self.quoted(subject.uid))"
        let file = Self.quoted(eventFile)
        var commands = [
            (
                "what happened to a message for one user: outcome and steps",
                "\(own) trace \(config) \(user) --msg \(Self.quoted(subject.msgID))"
            ),
            ("the stored state of that user: badge, settings, tokens, presence", "\(own) user \(config) \(user)"),
            (
                "what would happen to a message that is not sent yet: nothing is sent or changed",
                "\(own) explain \(config) --event \(file)"
            ),
            (
                "sends that message, and reports its outcome",
                "\(own) replay \(config) --in \(file) --fresh-ids --shift-times"
            ),
        ]
        if let token = subject.token {
            commands.append(
                (
                    "one push to a device token, with APNs' answer (here the simulator's)",
                    "\(own) send \(config) --app \(Self.quoted(subject.app)) --token \(Self.quoted(token)) --alert Hello"
                ))
        }
        return commands + [
            ("the records that the worker could not read", "\(own) dlq list \(config)"),
            ("the present state of the worker; q ends it", "\(own) top --worker 127.0.0.1:\(port)"),
            (
                "outcomes by verdict and reason since the start",
                "curl -s http://127.0.0.1:\(port)/metrics | grep ^carillon_decisions_total"
            ),
        ]
    }

    var text: TerminalText {
        var text: TerminalText = "try these next, in another terminal:\n"
        for (what, command) in commands { text += "\n" + Style.dim("# \(what)") + "\n\(command)\n" }
        return text + "\nthe operator's page: http://127.0.0.1:\(port)/\nthe page and all of this stay until ctrl-C\n"
    }

    /// Quotes a word for a POSIX shell.
    static func quoted(_ text: String) -> String {
        let plain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "/"), UInt8(ascii: ":"), UInt8(ascii: "@"):
                true
            default: false
            }
        }
        return plain && !text.isEmpty ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
