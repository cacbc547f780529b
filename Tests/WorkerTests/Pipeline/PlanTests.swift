// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

struct PlanTests {
    @Test("a plan is as its row says", arguments: PlanRow.all)
    func row(_ row: PlanRow) {
        let plan = Plan(row.decision, row.progress, allowed: row.allowed)
        #expect(PlanRow.words(plan, row.progress) == row.expected)
    }

    @Test("the first plan is that of no progress", arguments: PlanRow.all)
    func first(_ row: PlanRow) {
        let none = Progress()
        let general = Plan(row.decision, none, allowed: row.allowed)
        #expect(PlanRow.words(Plan(first: row.decision), none) == PlanRow.words(general, none))
    }

    /// Contract section 3, for any state and any decision.
    @Test("each device has one verdict, or the recipient has one without device")
    func oneVerdict() {
        var random = SeededGenerator(seed: .random(in: 0 ... .max))
        for _ in 0..<20_000 {
            let row = PlanRow(Substring(PlanRow.randomLine(&random)))
            let plan = Plan(row.decision, row.progress, allowed: row.allowed)
            let context = Comment("\(row.progress) \(row.decision), seed \(random.seed)")
            var named = plan.ended.map { row.progress.devices[$0].name }
            named += plan.repeated.map { $0.device } + plan.lost.map { $0.device } + plan.routes.map { $0.device }
            #expect(Set(named).count == named.count, "two verdicts of one device: \(context)")
            #expect(!named.contains { row.progress.recorded.contains($0) }, context)
            #expect(!plan.routes.contains { row.progress.keepsRoute($0.device) }, context)
            guard plan.withoutDevice != nil else { continue }
            #expect(!row.progress.isRecordedWithoutDevice, context)
            #expect(plan.repeated.isEmpty && plan.ended.isEmpty && plan.lost.isEmpty, context)
            // A live device gets the message without its alert, and no record.
            #expect(plan.routes.allSatisfy { PlanRow.word($0.way) == "quiet" }, context)
        }
    }
}

/// One line of `Tests/Cases/plans.txt`, which explains the words.
struct PlanRow: CustomTestStringConvertible, Sendable {
    let name: String
    let progress: Progress
    let decision: Decision
    let allowed: [String]
    let expected: String

    var testDescription: String { name }

    static let all: [PlanRow] = {
        guard let text = try? Cases.text("plans.txt") else { preconditionFailure("cannot read plans.txt") }
        return text.split(separator: "\n").filter { !$0.hasPrefix("#") && $0.contains("|") }.map(PlanRow.init)
    }()

    /// A state that can occur, with any decision.
    static func randomLine(_ random: inout SeededGenerator) -> String {
        var before: [String] = Bool.random(using: &random) ? ["tried"] : []
        var routes: [String] = []
        let isDenied = Bool.random(using: &random)
        for device in ["phone", "pad", "pc", "web"] {
            let standing = Progress.Standing.allCases.randomElement(using: &random) ?? .replaced
            switch Int.random(in: 0..<10, using: &random) {
            case 0...3: break
            case 4: before.append("recorded:\(device)")
            case 5: before.append("returned:\(device)")
            case 6: before += ["\(device)=replaced", "silent:\(device)"]
            default: before.append("\(device)=\(standing.rawValue)")
            }
            for list in ["acked", "accepted"] where Int.random(in: 0..<8, using: &random) == 0 {
                before.append("\(list):\(device)")
            }
            let ways = isDenied ? ["quiet"] : ["apns/0", "alert", "quiet", "wait", "already_read"]
            guard Bool.random(using: &random), let way = ways.randomElement(using: &random) else { continue }
            routes.append("\(device)=\(way)")
        }
        let deny = ["conv_muted", "expired"].randomElement(using: &random) ?? "dnd"
        let decision = isDenied ? deny : "allow"
        if decision == "expired" { routes = [] }
        return
            "random | \(before.joined(separator: " ")) | \(decision) \(routes.joined(separator: " ")) devices:phone,pad | -"
    }

    init(_ line: Substring) {
        let fields = line.split(separator: "|", omittingEmptySubsequences: false).map {
            $0.split(separator: " ").map(String.init)
        }
        precondition(fields.count == 4, "a row has four fields: \(line)")
        name = fields[0].joined(separator: " ")
        progress = fields[1].reduce(into: Progress()) { Self.read($1, into: &$0) }
        let routes = fields[2].dropFirst().filter { $0.contains("=") }
        decision = Decision(
            alert: fields[2][0] == "allow" ? .allow(forced: false) : .deny(Self.reason(fields[2][0])), counted: true,
            routes: routes.map { route in
                let (device, way) = Self.pair(route, "=")
                return Route(device: device, way: Self.way(way))
            })
        let devices = fields[2].last.flatMap { $0.hasPrefix("devices:") ? $0.dropFirst(8) : nil }
        allowed = devices?.split(separator: ",").map(String.init) ?? []
        expected = fields[3].joined(separator: " ")
    }

    private static func read(_ word: String, into progress: inout Progress) {
        switch word {
        case "tried": progress.earlierTry = .init()
        case "accepted": progress.hasAccepted = true
        case "alone": progress.isRecordedWithoutDevice = true
        case "desktop": progress.desktopHasIt = true
        case "token0": progress.pushedTokens = [0]
        case _ where word.contains(":"): readList(pair(word, ":"), into: &progress)
        default:
            let (device, standing) = pair(word, "=")
            if device == "tried" { return progress.earlierTry = .init(withoutDevice: reason(standing)) }
            guard let standing = Progress.Standing(rawValue: standing) else { preconditionFailure("unknown: \(word)") }
            progress.devices.append(.init(device, standing))
        }
    }

    private static func readList(_ word: (String, String), into progress: inout Progress) {
        switch word.0 {
        case "recorded": progress.recorded.append(word.1)
        case "returned": progress.returned.append(word.1)
        case "silent": progress.silent.append(word.1)
        case "acked": progress.acknowledged.append(word.1)
        case "accepted": progress.accepted.append(EarlierPush(word.1))
        case "addressed": progress.earlierTry?.addressed.append(word.1)
        default: preconditionFailure("unknown: \(word.0)")
        }
    }

    private static func pair(_ word: String, _ separator: Character) -> (String, String) {
        let parts = word.split(separator: separator).map(String.init)
        precondition(parts.count == 2, "not two parts: \(word)")
        return (parts[0], parts[1])
    }

    private static func reason(_ word: String) -> Reason {
        guard let reason = Reason(rawValue: word) else { preconditionFailure("unknown reason: \(word)") }
        return reason
    }

    private static func way(_ word: String) -> Route.Way {
        switch word {
        case "alert": .connection(presence: 0, alert: true, ackWithinMs: 8_000)
        case "quiet": .connection(presence: 0, alert: false, ackWithinMs: nil)
        case "wait": .hold(token: 0, holdMs: nil)
        case _ where word.hasPrefix("apns/"): .apns(token: Int(word.dropFirst(5)) ?? -1, copyTo: nil)
        default: .none(reason(word))
        }
    }

    static func words(_ plan: Plan, _ progress: Progress) -> String {
        var words = plan.repeated.map { "again:\($0.device)" }
        if let reason = plan.withoutDevice { words.append("alone=\(reason.rawValue)") }
        if plan.isUnreached { words.append("unreached") }
        for place in plan.ended {
            words.append("end:\(progress.devices[place].name)=\(plan.reasonOfLostRoute.rawValue)")
        }
        for route in plan.routes { words.append("\(route.device)=\(word(route.way))") }
        for (device, reason) in plan.lost { words.append("lost:\(device)=\(reason.rawValue)") }
        return words.isEmpty ? "-" : words.joined(separator: " ")
    }

    static func word(_ way: Route.Way) -> String {
        switch way {
        case .apns(let token, _): "apns/\(token)"
        case .connection(_, let alert, _): alert ? "alert" : "quiet"
        case .hold: "wait"
        case .none(let reason): reason.rawValue
        }
    }
}
