import Digits
import JSON
import PushCore

/// The members of `aps` for a push that alerts: what we compute, deep-merged with what the sender gave in `push.aps`.
///
/// The sender's keys win, but for the server's own: `badge`, `mutable-content`, and `alert` where details are hidden
/// (contract sections 2 and 5).
struct APSObject {
    private let given: [JSONValue.Member]
    private let text: AlertText
    private let sound: String
    private let threadID: String
    private let category: String?
    private let interruption: String?

    /// Where the body's characters lie in the bytes, for cutting.
    struct Body {
        /// The sender's name and what stands between it and the text, or empty.
        var name: String
        var text: String
        var range: Range<Int>
    }

    /// Written here, or never taken from the sender.
    private static let ownKeys: [String] = [
        "alert", "sound", "thread-id", "category", "interruption-level", "mutable-content", "badge",
    ]

    /// What may hold words of the message: the alert, and its parts where a sender put them beside it.
    private static let textKeys: [String] = [
        "alert", "title", "subtitle", "body", "loc-key", "loc-args", "title-loc-key", "title-loc-args",
        "subtitle-loc-key", "subtitle-loc-args", "summary-arg", "url-args",
    ]

    /// - Parameters:
    ///   - sound: what the sender gave, in whatever way (`LiftedKeys`).
    ///   - isReplaced: the sender's own `alert` is not to be seen: details are hidden, or it is one of several.
    init(_ message: borrowing Message, text: AlertText, sound given: String?, isReplaced: Bool) {
        if case .object(let members) = message.push.aps {
            self.given = isReplaced ? members.filter { !Self.textKeys.containsSame($0.key) } : members
        } else {
            self.given = []
        }
        self.text = text
        sound = given ?? "default"
        threadID = message.push.threadID ?? message.conversation.id
        category = message.push.category
        interruption = message.push.interruption
    }

    /// Writes the members without their braces, at least one.
    func write(to writer: inout JSONWriter) -> Body? {
        writer.key("alert")
        let body = writeAlert(to: &writer)
        // An empty name: no sound.
        write("sound", or: sound.isEmpty ? nil : sound, to: &writer)
        write("thread-id", or: threadID, to: &writer)
        write("category", or: category, to: &writer)
        write("interruption-level", or: interruption, to: &writer)
        // Whenever there is an alert, so that the app's service extension sees it.
        writer.member("mutable-content", 1)
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

    /// The sender's alert stands as given; title and body that it lacks are ours, a forced text is ours in any case.
    private func writeAlert(to writer: inout JSONWriter) -> Body? {
        switch given.isEmpty ? nil : given("alert") {
        case .string(let alert) where !text.isForcedText:
            return writeText(alert, to: &writer)
        case .object(let members):
            return writeMerged(members, to: &writer)
        default:
            return writeMerged([], to: &writer)
        }
    }

    private func writeMerged(_ members: [JSONValue.Member], to writer: inout JSONWriter) -> Body? {
        func gives(_ key: String, _ other: String) -> Bool {
            members.contains { ($0.isNamed(key) || $0.isNamed(other)) && !$0.value.isNull }
        }
        writer.beginObject()
        if let title = text.title, !gives("title", "title-loc-key") { writer.member("title", title) }
        var body: Body?
        let isOurs = text.isForcedText || !gives("body", "loc-key")
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
