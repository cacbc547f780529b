// SPDX-License-Identifier: Apache-2.0
import JSON

/// What Apple allows in a payload (apns.md 4.3, 4.5, 4.6: "Generating a remote notification", "Starting and updating Live
/// Activities with ActivityKit push notifications"), as a list of what is wrong with one.
struct AppleRules {
    enum Kind: String {
        case alert, background, voip, liveactivity
    }

    private(set) var problems: [String] = []
    private let kind: Kind

    static func problems(of bytes: [UInt8], _ kind: Kind) -> [String] {
        var rules = AppleRules(kind)
        rules.check(bytes)
        return rules.problems
    }

    private init(_ kind: Kind) { self.kind = kind }

    private mutating func check(_ bytes: [UInt8]) {
        if bytes.count > (kind == .voip ? 5120 : 4096) { problems.append("\(bytes.count) bytes") }
        guard let tree = try? JSONTree(parsing: bytes), case .object = tree else {
            return problems.append("no JSON object")
        }
        // The tree keeps one of a repeated key.
        if tree.bytes.count != bytes.count { problems.append("a key is repeated, or there are blanks") }
        guard let aps = tree["aps"], case .object(let members) = aps else { return problems.append("no aps") }
        for member in members { check(member.key, member.value) }
        switch kind {
        case .background:
            if members.map(\.key) != ["content-available"] { problems.append("a background push shows something") }
        case .liveactivity: checkActivity(aps)
        case .alert, .voip:
            if aps["alert"] == nil { problems.append("no alert") }
        }
        if aps["mutable-content"] != nil, aps["alert"] == nil { problems.append("mutable-content without an alert") }
    }

    private mutating func check(_ key: String, _ value: JSONTree) {
        let isActivity = kind == .liveactivity
        let isValid: Bool
        switch key {
        case "alert":
            if case .object(let members) = value {
                for member in members { checkAlert(member.key, member.value) }
                isValid = !members.isEmpty
            } else {
                isValid = value.string.map { !$0.isEmpty } ?? false
            }
        case "badge": isValid = value.int.map { $0 >= 0 && $0 <= Int32.max } ?? false
        case "sound": isValid = Self.isSound(value)
        case "thread-id", "category", "target-content-id", "filter-criteria": isValid = value.string != nil
        case "content-available", "mutable-content": isValid = value.int == 1
        case "interruption-level":
            isValid = ["passive", "active", "time-sensitive", "critical"].contains(value.string)
        case "relevance-score": isValid = value.double.map { isActivity || (0...1).contains($0) } ?? false
        case "timestamp", "stale-date", "dismissal-date": isValid = isActivity && value.int != nil
        case "event": isValid = isActivity && ["start", "update", "end"].contains(value.string)
        case "attributes-type": isValid = isActivity && value.string != nil
        case "input-push-token": isValid = isActivity && value.int == 1
        case "input-push-channel": isValid = isActivity && value.string.map { !$0.isEmpty } ?? false
        case "content-state", "attributes": isValid = isActivity && value.members != nil
        default: return problems.append("unknown key aps.\(key)")
        }
        if !isValid { problems.append("aps.\(key) is wrong") }
    }

    private mutating func checkAlert(_ key: String, _ value: JSONTree) {
        let isValid: Bool
        switch key {
        case "title", "subtitle", "body", "launch-image", "title-loc-key", "subtitle-loc-key", "loc-key":
            isValid = value.string != nil
        case "title-loc-args", "subtitle-loc-args", "loc-args":
            isValid = value.array?.allSatisfy { $0.string != nil } ?? false
        default: return problems.append("unknown key aps.alert.\(key)")
        }
        if !isValid { problems.append("aps.alert.\(key) is wrong") }
    }

    private static func isSound(_ value: JSONTree) -> Bool {
        guard let members = value.members else { return value.string.map { !$0.isEmpty } ?? false }
        return members.allSatisfy { member in
            switch member.key {
            case "critical": [0, 1].contains(member.value.int)
            case "name": member.value.string != nil
            case "volume": member.value.double.map { (0...1).contains($0) } ?? false
            default: false
            }
        }
    }

    private mutating func checkActivity(_ aps: JSONTree) {
        for key in ["timestamp", "event", "content-state"] where aps[key] == nil { problems.append("no \(key)") }
        let event = aps["event"]?.string
        for key in ["attributes-type", "attributes"] where (event == "start") != (aps[key] != nil) {
            problems.append("\(key) at \(event ?? "no event")")
        }
        for key in ["input-push-token", "input-push-channel"] where event != "start" && aps[key] != nil {
            problems.append("\(key) at \(event ?? "no event")")
        }
        if aps["input-push-token"] != nil, aps["input-push-channel"] != nil { problems.append("two ways of input") }
        if event != "end", aps["dismissal-date"] != nil { problems.append("dismissal-date at \(event ?? "no event")") }
        if aps["badge"] != nil || aps["mutable-content"] != nil { problems.append("an activity has no badge") }
    }
}
