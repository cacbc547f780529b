// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// The members of `aps` for an alert: our own, deep-merged with those of `push.aps`.
///
/// The sender's keys win, except `badge`, `mutable-content`, and `alert` where details are hidden (contract sections 2 and 5).
struct APSObject {
    private let given: [JSONValue.Member]
    private let text: AlertText
    private let sound: String
    private let threadID: String
    private let category: String?
    private let interruption: String?
    private let isMutable: Bool
    /// The sender's own number, as written (`badge: sender`); nil: there is none.
    private let badge: String?

    /// The position of the body's characters in the bytes, for cutting.
    struct Body {
        /// The sender's name with its separator, or empty.
        var name: String
        var text: String
        var range: Range<Int>
    }

    /// Written here, or never taken from the sender.
    private static let ownKeys: [String] = [
        "alert", "sound", "thread-id", "category", "interruption-level", "mutable-content", "badge",
    ]

    /// Keys that may contain words of the message: the alert, and its parts if a sender put them directly into `aps`.
    private static let textKeys: [String] = [
        "alert", "title", "subtitle", "body", "loc-key", "loc-args", "title-loc-key", "title-loc-args",
        "subtitle-loc-key", "subtitle-loc-args", "summary-arg", "url-args",
    ]

    init(
        _ message: borrowing Message, _ lifted: LiftedKeys, text: AlertText, variant: borrowing PayloadVariant,
        rules: borrowing PayloadRules
    ) {
        let isReplaced = variant.isHidden || variant.mergedCount > 1
        var given: [JSONValue.Member] = []
        if case .object(let members) = lifted.aps { given = members }
        badge = rules.badge == .sender && !variant.isDigest ? SenderBadge.text(in: given) : nil
        if isReplaced, !given.isEmpty { given = given.filter { !Self.textKeys.containsSame($0.key) } }
        // Shown as given, but for controls.
        for index in given.indices where given[index].isNamed("alert") {
            given[index].value = PlainText.alert(given[index].value)
        }
        self.given = given
        self.text = text
        sound = lifted.sound ?? "default"
        threadID = message.push.threadID ?? message.conversation.id
        category = message.push.category
        interruption = message.push.interruption
        isMutable = rules.isMutable(message, variant)
    }

    /// Writes the members without their braces, at least one.
    func write(to writer: inout JSONWriter) -> Body? {
        writer.key("alert")
        let body = writeAlert(to: &writer)
        // An empty name means no sound.
        write("sound", or: sound.isEmpty ? nil : sound, to: &writer)
        write("thread-id", or: threadID, to: &writer)
        write("category", or: category, to: &writer)
        write("interruption-level", or: interruption, to: &writer)
        if isMutable { writer.member("mutable-content", 1) }
        if let badge {
            writer.key("badge")
            writer.number(badge)
        }
        for member in given where !member.value.isNull && !Self.ownKeys.containsSame(member.key) {
            writer.member(member)
        }
        return body
    }

    private func given(_ key: String) -> JSONValue? {
        for member in given where member.isNamed(key) {
            return member.value.isNull ? nil : member.value
        }
        return nil
    }

    private func write(_ key: StaticString, or own: String?, to writer: inout JSONWriter) {
        if let value = given.isEmpty ? nil : given(key.description) {
            writer.key(key)
            writer.value(value)
        } else {
            writer.member(key, ifPresent: own)
        }
    }

    /// The sender's alert is used as given. Title, subtitle and body that it lacks are ours. A forced text replaces its body.
    private func writeAlert(to writer: inout JSONWriter) -> Body? {
        switch given.isEmpty ? nil : given("alert") {
        case .string(let alert) where !text.isForcedText && !BlankText.showsNothing(alert):
            return writeText(alert, to: &writer)
        case .object(let members) where !showsNothing(members):
            return writeMerged(members, to: &writer)
        default:
            return writeMerged([], to: &writer)
        }
    }

    /// Whether the alert has one of two keys that give the same part.
    private func gives(_ members: [JSONValue.Member], _ key: String, _ other: String) -> Bool {
        members.contains { ($0.isNamed(key) || $0.isNamed(other)) && !$0.value.isNull }
    }

    /// Whether all parts of the merged alert show nothing: it is treated as absent then.
    private func showsNothing(_ members: [JSONValue.Member]) -> Bool {
        if text.isForcedText || !gives(members, "body", "loc-key") { return false }
        if text.title != nil, !gives(members, "title", "title-loc-key") { return false }
        if text.subtitle != nil, !gives(members, "subtitle", "subtitle-loc-key") { return false }
        return BlankText.showsNothing(alert: .object(members))
    }

    private func writeMerged(_ members: [JSONValue.Member], to writer: inout JSONWriter) -> Body? {
        writer.beginObject()
        if let title = text.title ?? text.ownTitle, !gives(members, "title", "title-loc-key") {
            writer.member("title", title)
        }
        if let subtitle = text.subtitle, !gives(members, "subtitle", "subtitle-loc-key") {
            writer.member("subtitle", subtitle)
        }
        var body: Body?
        let isOurs = text.isForcedText || !gives(members, "body", "loc-key")
        if isOurs {
            writer.key("body")
            body = writeText(name: text.name, text.body, to: &writer)
        }
        for member in members where !member.value.isNull {
            let isBody = member.isNamed("body")
            if isOurs, isBody || member.isNamed("loc-key") || member.isNamed("loc-args") { continue }
            if isBody, case .string(let given) = member.value {
                writer.key("body")
                body = writeText(given, to: &writer)
            } else {
                writer.member(member)
            }
        }
        writer.endObject()
        return body
    }

    private func writeText(name: String = "", _ text: String, to writer: inout JSONWriter) -> Body {
        Body(name: name, text: text, range: writer.placedString(name, text))
    }
}
