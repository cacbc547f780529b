// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Digits
import JSON

@testable import Simulator

/// A scenario is read or refused with its problems, each a line with its place; what is accepted the simulator can play,
/// the same way each time.
enum ScenarioFuzz {
    private static let places = [
        "scenario", "settings[", "rules[", "on_connect[", "connection", "the scenario is not JSON",
    ]
    /// Longer than any simulator runs: about 31 years.
    private static let msMax: Int64 = 1_000_000_000_000

    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let json = Array(bytes)
        do throws(ScenarioFault) {
            let scenario = try Scenario(json: json)
            return rewritten(json, scenario) + check(scenario) + play(scenario)
        } catch {
            return check(error)
        }
    }

    private static func check(_ fault: ScenarioFault) -> [String] {
        if fault.problems.isEmpty { return ["refused without a problem"] }
        if fault.problems.count > 101 { return ["\(fault.problems.count) problems"] }
        var complaints: [String] = []
        for problem in fault.problems {
            if !places.contains(where: { problem.hasPrefix($0) }) { complaints.append("no place: \(problem)") }
            if problem.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
                complaints.append("a control in \(problem.debugDescription)")
            }
            if problem.utf8.count > 640 { complaints.append("a problem of \(problem.utf8.count) bytes") }
        }
        return complaints
    }

    /// The same document without blanks, escapes and repeated keys.
    private static func rewritten(_ json: [UInt8], _ scenario: Scenario) -> [String] {
        guard let tree = try? JSONTree(parsing: json), let again = try? Scenario(json: tree.bytes) else {
            return ["written again it is refused"]
        }
        if again != scenario { return ["written again it is \(again), not \(scenario)"] }
        return hex(tree, scenario)
    }

    /// Raw bytes are those that their digits name.
    private static func hex(_ tree: JSONTree, _ scenario: Scenario) -> [String] {
        zip(scenario.rules, tree["rules"]?.array ?? []).compactMap { rule, source in
            guard case .bytes(let bytes) = rule.action else { return nil }
            let digits = (source["fault"]?["hex"]?.string ?? "").utf8.filter { $0 != 0x20 }.map { $0 | 0x20 }
            return Hex.digits(bytes) == digits ? nil : "\(bytes) of \(String(decoding: digits, as: UTF8.self))"
        }
    }

    // MARK: Bounds

    private static func check(_ scenario: Scenario) -> [String] {
        let terms = scenario.connection
        var times: [Int64] = [terms.roundTripMs, terms.tokenThrottle?.minMs ?? 0, scenario.goAwayEveryMs ?? 1]
        times += scenario.settings.map(\.afterMs)
        var complaints: [String] = []
        if !scenario.settings.map(\.afterMs).elementsEqual(scenario.settings.map(\.afterMs).sorted()) {
            complaints.append("settings out of their order")
        }
        if let window = terms.windowBytes, window < 65_535 { complaints.append("a window of \(window)") }
        if let every = scenario.goAwayEveryMs, every < 1 { complaints.append("a GOAWAY every \(every) ms") }
        for rule in scenario.rules { complaints += check(rule.match) + check(rule.action, &times) }
        for rule in scenario.onConnect {
            complaints += check(rule.match)
            if case .goAway(_, let reason?) = rule.fault { complaints += check(goAwayReason: reason) }
            if case .bytes(let bytes) = rule.fault, bytes.isEmpty { complaints.append("no bytes") }
        }
        complaints += times.filter { !(0...msMax).contains($0) }.map { "a time of \($0) ms" }
        return complaints
    }

    private static func check(_ match: ScenarioRule.Match) -> [String] {
        var complaints: [String] = []
        if let share = match.share, !(0...1).contains(share) { complaints.append("a share of \(share)") }
        if match.every < 1 || match.skip < 0 || match.count < 0 || match.connection ?? 0 < 0 {
            complaints.append("\(match)")
        }
        if !(0...msMax).contains(match.afterMs) || match.untilMs < 0 { complaints.append("at \(match.afterMs) ms") }
        return complaints
    }

    private static func check(_ action: ScenarioAction, _ times: inout [Int64]) -> [String] {
        switch action {
        case .answer(let answer):
            times.append(answer.delayMs)
            var complaints: [String] = []
            if !(200...599).contains(answer.status) { complaints.append("status \(answer.status)") }
            if let bytes = answer.splitBytes, bytes < 1 { complaints.append("pieces of \(bytes)") }
            if case .padded(let bytes) = answer.body, !(0...(64 << 20)).contains(bytes) {
                complaints.append("a body of \(bytes)")
            }
            return complaints
        case .drip(let bytes, let everyMs):
            times.append(everyMs)
            return bytes >= 1 && everyMs >= 1 ? [] : ["\(action)"]
        case .flood(_, let count): return (0...1_000_000).contains(count) ? [] : ["\(action)"]
        case .bytes(let bytes): return bytes.isEmpty ? ["no bytes"] : []
        case .goAway(_, _, let reason?, _): return check(goAwayReason: reason)
        default: return []
        }
    }

    /// A frame has room for 16 KiB, eight bytes of which are the stream and the code (RFC 9113 sections 4.2, 6.8).
    private static func check(goAwayReason reason: String) -> [String] {
        let bytes = RawFrames.debug(reason).count
        return bytes <= 16_384 - 8 ? [] : ["a GOAWAY of \(bytes) bytes"]
    }

    // MARK: Playing

    private static func play(_ scenario: Scenario) -> [String] {
        let first = actions(of: scenario)
        return first == actions(of: scenario) ? [] : ["played again it does something else"]
    }

    private static func actions(of scenario: Scenario) -> [String] {
        var scenario = scenario
        var actions: [String] = []
        for (index, atMs) in [0, 1, 1_000, 60_000, 999_999_999_000, Int64.max].enumerated() {
            let fault = scenario.fault(ofConnection: index, atMs: atMs)
            actions.append("\(fault.map { "\($0)" } ?? "served")")
            let token = Array("00dead0\(index)".utf8)
            let subject = Scenario.Subject(
                token: token[(index % 3)...], topic: Array("com.example.im".utf8)[...],
                pushType: index.isMultiple(of: 2) ? .alert : .voip, atMs: atMs, connection: index)
            for _ in 0..<4 { actions.append(scenario.action(for: subject).map { "\($0)" } ?? "accepted") }
        }
        return actions
    }
}
