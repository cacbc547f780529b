// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

/// One line of `Tests/Cases/decisions.txt`: `from | what it shows | message | recipient | app | decision`.
///
/// What the words mean stands in the functions of `World` that read them.
struct DecisionRow: CustomTestStringConvertible, Sendable {
    /// The rule it follows from: a row of im.md.
    let source: String
    let name: String
    let message: String
    let recipient: String
    let app: String
    let expected: String

    var testDescription: String { "\(source): \(name)" }

    init(_ line: Substring) {
        let fields = line.split(separator: "|", omittingEmptySubsequences: false).map { Self.squeezed($0) }
        precondition(fields.count == 6, "a row has six fields: \(line)")
        (source, name, message) = (fields[0], fields[1], fields[2])
        (recipient, app, expected) = (fields[3], fields[4], fields[5])
    }

    /// All rows of the file.
    static let all: [DecisionRow] = {
        guard let text = try? Cases.text("decisions.txt") else { preconditionFailure("cannot read decisions.txt") }
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") && $0.contains("|") }.map(DecisionRow.init)
    }()

    private static func squeezed(_ text: Substring) -> String {
        text.split(separator: " ").joined(separator: " ")
    }

    /// What `decide` says, in the words of the file; `dropped` where step 4 comes before it.
    func decide(_ trace: inout some DecisionTrace) -> String {
        let world = World(self)
        if let activity = world.activity {
            return PushCore.decide(
                activity, sentMs: world.sentMs, for: world.recipient, state: world.activityState, now: world.now
            ).words
        }
        guard world.message.isMeant(for: world.recipient.uid) else { return "dropped" }
        return PushCore.decide(
            world.message, sentMs: world.sentMs, for: world.recipient, policy: world.policy, zones: TestZones(),
            now: world.now, trace: &trace
        ).words
    }
}

extension Decision {
    /// `allow|forced|<reason>`, `+1|+0`, then per route `device=…`: `apns` `apns+copy` `apns+quiet` `alert/<ack ms>` `quiet`
    /// `hold/<ms>` `wait` `<reason>`; at the end `no_token` where nobody is reached.
    var words: String {
        var words = [alert.word, counted ? "+1" : "+0"]
        for route in routes { words.append("\(route.device)=\(route.way.word)") }
        if reachesNobody { words.append("no_token") }
        return words.joined(separator: " ")
    }
}

extension Decision.Alert {
    var word: String {
        switch self {
        case .allow(let forced): forced ? "forced" : "allow"
        case .deny(let reason): reason.rawValue
        }
    }
}

extension Route.Way {
    var word: String {
        switch self {
        case .apns(_, let copyTo): copyTo.map { $0.mayAlert ? "apns+copy" : "apns+quiet" } ?? "apns"
        case .connection(_, let alert, let ack):
            alert ? "alert/\(ack.map { String($0) } ?? "no ack")" : ack == nil ? "quiet" : "quiet with ack"
        case .hold(_, let ms): ms.map { "hold/\($0)" } ?? "wait"
        case .none(let reason): reason.rawValue
        }
    }
}
