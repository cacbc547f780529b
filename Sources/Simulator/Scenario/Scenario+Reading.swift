import HTTP2
import JSON

extension Scenario {
    /// Reads a scenario; the fault lists every problem of the file, unknown keys included.
    public init(json: [UInt8]) throws(ScenarioFault) {
        let tree: JSONTree
        do {
            tree = try JSONTree(parsing: json, maxBytes: 1 << 20)
        } catch {
            throw ScenarioFault(problems: ["the scenario is no JSON: \(error)"])
        }
        var reader = ScenarioReader()
        let scenario = reader.scenario(tree)
        guard reader.problems.isEmpty else { throw ScenarioFault(problems: reader.problems) }
        self = scenario
    }
}

/// Turns a JSON tree into rules and gathers what is wrong on the way.
private struct ScenarioReader {
    var problems: [String] = []

    mutating func scenario(_ tree: JSONTree) -> Scenario {
        check(tree, "scenario", ["seed", "goaway_after_requests", "settings", "rules"])
        var steps: [Scenario.SettingsStep] = []
        for (index, step) in (array(tree, "settings", "scenario")).enumerated() {
            let place = "settings[\(index)]"
            check(step, place, ["after_s", "max_concurrent_streams"])
            steps.append(
                Scenario.SettingsStep(
                    afterMs: milliseconds(step, "after_s", place) ?? 0,
                    maxConcurrentStreams: UInt32(clamping: integer(step, "max_concurrent_streams", place) ?? 1000)))
        }
        var rules: [ScenarioRule] = []
        for (index, rule) in (array(tree, "rules", "scenario")).enumerated() {
            rules.append(self.rule(rule, "rules[\(index)]"))
        }
        return Scenario(
            rules: rules, settings: steps,
            goAwayAfterRequests: integer(tree, "goaway_after_requests", "scenario").map { Int(clamping: $0) },
            seed: UInt64(bitPattern: integer(tree, "seed", "scenario") ?? 1))
    }

    private mutating func rule(_ tree: JSONTree, _ place: String) -> ScenarioRule {
        check(tree, place, ["match", "answer", "fault"])
        let match = tree["match"].map { self.match($0, place + ".match") } ?? ScenarioRule.Match()
        switch (tree["answer"], tree["fault"]) {
        case (let answer?, nil): return ScenarioRule(match, .answer(self.answer(answer, place + ".answer")))
        case (nil, let fault?): return ScenarioRule(match, self.fault(fault, place + ".fault"))
        default:
            problems.append("\(place): one of 'answer' and 'fault' is wanted")
            return ScenarioRule(match, .close)
        }
    }

    private mutating func match(_ tree: JSONTree, _ place: String) -> ScenarioRule.Match {
        check(tree, place, ["token", "topic", "push_type", "share", "skip", "count", "after_s", "until_s"])
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array((string(tree, "token", place) ?? "").utf8)
        match.topic = string(tree, "topic", place).map { Array($0.utf8) }
        if let type = string(tree, "push_type", place) {
            match.pushType = PushType(rawValue: type)
            if match.pushType == nil { problems.append("\(place).push_type: no push type is called '\(type)'") }
        }
        if let share = tree["share"] {
            match.share = share.double
            if !(match.share.map { (0...1).contains($0) } ?? false) {
                problems.append("\(place).share: a number from 0 to 1 is wanted")
            }
        }
        match.skip = Int(clamping: integer(tree, "skip", place) ?? 0)
        match.count = Int(clamping: integer(tree, "count", place) ?? .max)
        match.afterMs = milliseconds(tree, "after_s", place) ?? 0
        match.untilMs = milliseconds(tree, "until_s", place) ?? .max
        return match
    }

    private mutating func answer(_ tree: JSONTree, _ place: String) -> ScenarioAnswer {
        check(tree, place, ["status", "reason", "timestamp", "retry_after", "delay_ms"])
        var answer = ScenarioAnswer()
        answer.status = Int(clamping: integer(tree, "status", place) ?? 200)
        if !(200...599).contains(answer.status) { problems.append("\(place).status: 200 to 599 is wanted") }
        answer.reason = string(tree, "reason", place)
        answer.timestampMs = integer(tree, "timestamp", place)
        answer.retryAfterSeconds = integer(tree, "retry_after", place).map { Int(clamping: $0) }
        answer.delayMs = integer(tree, "delay_ms", place) ?? 0
        return answer
    }

    private mutating func fault(_ tree: JSONTree, _ place: String) -> ScenarioAction {
        let kind = string(tree, "kind", place) ?? ""
        switch kind {
        case "refuse_stream":
            check(tree, place, ["kind"])
            return .reset(.refusedStream)
        case "reset":
            check(tree, place, ["kind", "code"])
            return .reset(code(tree, place) ?? .internalError)
        case "goaway":
            check(tree, place, ["kind", "last", "code", "reason"])
            let last = string(tree, "last", place) ?? "before"
            if ScenarioAction.GoAwayLast(rawValue: last) == nil {
                problems.append("\(place).last: none, before or this is wanted")
            }
            return .goAway(
                last: ScenarioAction.GoAwayLast(rawValue: last) ?? .before, code: code(tree, place) ?? .noError,
                reason: string(tree, "reason", place))
        case "close":
            check(tree, place, ["kind"])
            return .close
        case "freeze":
            check(tree, place, ["kind", "scope"])
            let scope = string(tree, "scope", place) ?? "connection"
            if !["stream", "connection"].contains(scope) {
                problems.append("\(place).scope: stream or connection is wanted")
            }
            return scope == "stream" ? .freezeStream : .freezeConnection
        case "drip":
            check(tree, place, ["kind", "bytes", "every_ms"])
            return .drip(
                bytes: max(1, Int(clamping: integer(tree, "bytes", place) ?? 1)),
                everyMs: max(1, integer(tree, "every_ms", place) ?? 50))
        default:
            problems.append("\(place).kind: refuse_stream, reset, goaway, close, freeze or drip is wanted")
            return .close
        }
    }

    private mutating func code(_ tree: JSONTree, _ place: String) -> HTTP2ErrorCode? {
        guard let value = tree["code"] else { return nil }
        if let number = value.int, let code = UInt32(exactly: number) { return HTTP2ErrorCode(rawValue: code) }
        let known = (0...13).map { HTTP2ErrorCode(rawValue: $0) }
        if let name = value.string, let code = known.first(where: { $0.description == name }) { return code }
        problems.append("\(place).code: an HTTP/2 error code by name (CANCEL) or number is wanted")
        return nil
    }

    // MARK: Leaves

    private mutating func check(_ tree: JSONTree, _ place: String, _ known: [String]) {
        guard let members = tree.members else {
            problems.append("\(place): an object is wanted")
            return
        }
        for member in members where !known.contains(member.key) {
            problems.append("\(place).\(member.key): unknown key; known are \(known.joined(separator: ", "))")
        }
    }

    private mutating func array(_ tree: JSONTree, _ key: String, _ place: String) -> [JSONTree] {
        guard let value = tree[key] else { return [] }
        if value.array == nil { problems.append("\(place).\(key): a list is wanted") }
        return value.array ?? []
    }

    private mutating func string(_ tree: JSONTree, _ key: String, _ place: String) -> String? {
        guard let value = tree[key], value != .null else { return nil }
        if value.string == nil { problems.append("\(place).\(key): a string is wanted") }
        return value.string
    }

    private mutating func integer(_ tree: JSONTree, _ key: String, _ place: String) -> Int64? {
        guard let value = tree[key], value != .null else { return nil }
        guard let number = value.int, number >= 0 else {
            problems.append("\(place).\(key): a whole number from 0 is wanted")
            return nil
        }
        return number
    }

    private mutating func milliseconds(_ tree: JSONTree, _ key: String, _ place: String) -> Int64? {
        guard let value = tree[key], value != .null else { return nil }
        guard let seconds = value.double, seconds >= 0, seconds < 1e9 else {
            problems.append("\(place).\(key): seconds from 0 are wanted")
            return nil
        }
        return Int64(seconds * 1000)
    }
}
