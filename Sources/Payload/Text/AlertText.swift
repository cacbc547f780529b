// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The text of an alert, by the contract's order: forced > template > content > built-in of the type > generic.
struct AlertText {
    var title: String?
    var subtitle: String?
    /// The app's prefix with the sender's name, or empty.
    ///
    /// The two are written one after the other, because joining them would create another string for each push.
    var name = ""
    var body: String
    /// The body is `push.force.content`, which also replaces the body of `aps.alert`.
    var isForcedText = false

    /// - Parameter given: the title that the sender gave, as `push.title` or in the payload (`LiftedKeys`).
    init(
        _ message: borrowing Message, variant: PayloadVariant, title given: String?, prefix: PrefixFormat,
        templates: Templates
    ) {
        let language = variant.language
        if variant.isHidden {
            // Title, subtitle, name, content and the sender's `aps.alert` are all replaced.
            body = templates.hidden(
                contentKey: variant.contentKey, language: language, mergedCount: variant.mergedCount)
            return
        }
        let template = message.push.template.flatMap { templates.filled($0, language: language) }
        title = template?.title.flatMap(Self.shown) ?? given.flatMap(Self.shown)
        let nick = message.from.nick.map(PlainText.name).flatMap { $0.isEmpty ? nil : $0 }
        if variant.mergedCount > 1 {
            // The number is that of all messages. A name may be the title only where all have the same sender.
            if title == nil, message.conversation.type == .p2p, message.push.prefix { title = nick }
            body = templates.merged(variant.mergedCount, language: language)
            return
        }
        subtitle = message.push.subtitle.flatMap(Self.shown)
        if variant.isForced, let forced = message.push.force.content.flatMap({ Self.shown($0) }) {
            body = forced
            isForcedText = true
        } else if let content = template?.content.flatMap(Self.shown) ?? message.push.content.flatMap(Self.shown) {
            body = content
        } else if message.kind == .revoke {
            // It names the sender itself.
            body = templates.revoke(nick: nick, language: language)
            return
        } else {
            body =
                message.typeName.flatMap { templates.text(ofType: $0, language: language) }
                ?? templates.generic(language: language)
        }
        // The body is cut before the prefix is added.
        if message.push.prefix { name = prefix.text(nick: nick) }
    }

    private static func shown(_ text: String) -> String? {
        let text = PlainText.body(text)
        return BlankText.showsNothing(text) ? nil : text
    }
}
