// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet

/// The payload that the contract gives for an event, a recipient and one set of facts about it: without badge and `pid`.
struct Expected {
    let event: Sent
    let app: AppSettings
    let uid: String
    var isForced = false
    var isHidden = false
    /// The language of the token or the user; nil: the app's.
    var language: String?
    var contentKey: String?
    /// Nil: either way is possible.
    var isMutable: Bool? = true
    /// A revoke lowered the number of the recipient. Nil: either way is possible.
    var lowersNumber: Bool?
    /// Several alerts in one.
    var merged = 0

    private var words: PushWords { event.push }
    private var texts: SimulatedTexts { SimulatedTexts.of(Self.known(language) ?? app.defaultLanguage) }
    var profile: String { words.profile ?? app.profile }
    private static let nick = "N"

    private static func known(_ language: String?) -> String? {
        language == "en" || language == "zh-Hans" ? language : nil
    }

    // MARK: Texts

    var title: String? {
        if isHidden { return nil }
        let own = words.template.map { texts.title(name: $0["name"] ?? "") } ?? words.title
        let isOfOne = merged <= 1 || !event.isGroup && !event.isOfSystem
        if own == nil, isOfOne, app.title != "none" || merged > 1 && words.hasPrefix { return Self.nick }
        return own
    }

    var body: String {
        if isHidden, event.kind == .revoke, merged <= 1 { return texts.namelessRevoke }
        if isHidden, contentKey == "secret" { return texts.secret }
        if merged > 1 { return "\(merged)" + (merged == 1 ? texts.merged.one : texts.merged.other) }
        if isHidden { return texts.generic }
        let forced = isForced ? words.force?.content : nil
        let template = words.template.map { texts.content(name: $0["name"] ?? "", what: $0["what"] ?? "") }
        let content = forced ?? template ?? words.content
        if content == nil, event.kind == .revoke { return Self.nick + texts.revoke }
        let typed = words.typeName == "PICTURE" ? texts.picture : nil
        let name = words.hasPrefix ? app.prefix.0 + Self.nick + app.prefix.1 : ""
        return name + (content ?? typed ?? texts.generic)
    }

    // MARK: JSON

    /// `aps` of an alert.
    var alert: [String: JudgeJSON] {
        var alert: [String: JudgeJSON] = ["body": .text(body)]
        if let title { alert["title"] = .text(title) }
        if !isHidden, merged <= 1, let subtitle = words.subtitle { alert["subtitle"] = .text(subtitle) }
        var aps: [String: JudgeJSON] = [
            "alert": .object(alert), "thread-id": .text(words.threadID ?? event.conversation),
        ]
        aps["sound"] = .text(words.sound ?? "default")
        aps["category"] = words.category.map { .text($0) }
        aps["interruption-level"] = words.interruption.map { .text($0) }
        if isMutable == true { aps["mutable-content"] = .number(1) }
        return aps
    }

    /// Everything next to `aps` and `pid`.
    var keys: [String: JudgeJSON] {
        var custom: [String: JudgeJSON] = [:]
        if let key = words.key { custom["k"] = .text(key) }
        var keys: [String: JudgeJSON] = [:]
        if profile != "rc" {
            if let text = words.payloadText { custom["payload"] = .text(text) }
            if let target = event.target { custom["revoke_msg_id"] = .text(target) }
        }
        // An extension that counts for itself learns which revokes add 1.
        let countsItself = app.badge == .none && event.kind == .revoke && event.revokeBadge == "count"
        if countsItself, profile == "nim" || profile == "raw" { custom["revoke_counts"] = .flag(true) }
        if countsItself, profile == "rc" { keys["revoke_counts"] = .flag(true) }
        switch profile {
        case "rc":
            keys["rc"] = .object(rc)
            if let text = words.payloadText {
                keys["appData"] = .text(text)
            } else if let key = words.key {
                keys["appData"] = .text("{\"k\":\"\(key)\"}")
            }
            if let target = event.target { keys["revoke_msg_id"] = .text(target) }
        case "wps":
            custom["conv_id"] = .text(event.conversation)
            custom["conv_type"] = .text(type)
            custom["from"] = .text(event.sender)
            custom["msg_id"] = .text(event.messageID)
            if lowersNumber == true { custom["corner_mark_decrease"] = .flag(true) }
            keys["message"] = .object(["params": .object(custom)])
        default:
            keys = custom
            keys["mid"] = .text(event.messageID)
            guard profile == "nim" else { break }
            keys["sessionid"] = .text(type == "p2p" ? event.sender : event.conversation)
            keys["sessiontype"] = .text(type)
        }
        guard !words.isSilent, !words.isVoip, !isHidden else { return keys }
        if merged <= 1, let image = words.image { keys["image"] = .text(image) }
        if app.isCommunication, merged <= 1 || type == "p2p" { keys["im"] = .object(sender) }
        return keys
    }

    private var type: String { event.isGroup ? "group" : event.isOfSystem ? "system" : "p2p" }

    private var rc: [String: JudgeJSON] {
        let isToConversation = event.isGroup || event.isOfSystem
        var rc: [String: JudgeJSON] = [
            "cType": .text(event.isGroup ? "GRP" : event.isOfSystem ? "SYS" : "PR"), "fId": .text(event.sender),
            "tId": .text(isToConversation ? event.conversation : event.sender), "rId": .text(uid),
            "id": .text(event.messageID),
        ]
        rc["oName"] = words.typeName.map { .text($0) }
        return rc
    }

    private var sender: [String: JudgeJSON] {
        [
            "sender": .object(["id": .text(event.sender), "name": .text(Self.nick)]),
            "conv": .object(["id": .text(event.conversation), "group": .flag(event.isGroup)]),
            "msg_id": .text(event.messageID),
        ]
    }
}
