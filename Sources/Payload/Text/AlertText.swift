// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The text of an alert, by the contract's order: forced > template > content > built-in of the type > generic.
struct AlertText {
    /// The sender's.
    var title: String?
    /// The app's, for an alert without one (`title`). An `aps.alert` that shows nothing shows nothing with it either.
    var ownTitle: String?
    var subtitle: String?
    /// The app's prefix with the sender's name, or empty.
    ///
    /// The two are written one after the other, because joining them would create another string for each push.
    var name = ""
    var body: String
    /// The body is `push.force.content`, which also replaces the body of `aps.alert`.
    var isForcedText = false
}

extension AlertText {
    /// Calls the memberwise initialiser, which moves its arguments: assigning the parts would end with a copy of them all.
    ///
    /// - Parameter given: the title that the sender gave, as `push.title` or in the payload (`LiftedKeys`).
    init(
        _ message: borrowing Message, variant: borrowing PayloadVariant, title given: String?,
        rules: borrowing PayloadRules,
        templates: Templates
    ) {
        let language = variant.language
        if variant.isHidden {
            // Title, subtitle, name, content and the sender's `aps.alert` are all replaced.
            if message.kind == .revoke, variant.mergedCount <= 1 {
                self.init(body: templates.revoke(nick: nil, language: language))
                return
            }
            self.init(
                body: templates.hidden(
                    contentKey: variant.contentKey, language: language, mergedCount: variant.mergedCount))
            return
        }
        let template = message.push.template.flatMap { templates.filled($0, language: language) }
        var title = template?.title.flatMap(Self.shown) ?? given.flatMap(Self.shown)
        let nick = message.from.nick.map(PlainText.name).flatMap { $0.isEmpty ? nil : $0 }
        if variant.mergedCount > 1 {
            // The number is that of all messages. A name may be the title only where all have the same sender.
            if title == nil, message.conversation.type == .p2p, message.push.prefix { title = nick }
            let own = Self.ownTitle(message, nick: message.conversation.type == .p2p ? nick : nil, rules)
            self.init(title: title, ownTitle: own, body: templates.merged(variant.mergedCount, language: language))
            return
        }
        let own = Self.ownTitle(message, nick: nick, rules)
        let subtitle = message.push.subtitle.flatMap(Self.shown)
        let forced = variant.isForced ? message.push.force.content.flatMap(Self.shown) : nil
        let content = forced ?? template?.content.flatMap(Self.shown) ?? message.push.content.flatMap(Self.shown)
        if content == nil, message.kind == .revoke {
            // It names the sender itself.
            self.init(
                title: title, ownTitle: own, subtitle: subtitle,
                body: templates.revoke(nick: nick, language: language))
            return
        }
        self.init(
            title: title, ownTitle: own, subtitle: subtitle,
            // The body is cut before the prefix is added.
            name: message.push.prefix ? rules.prefix.text(nick: nick) : "",
            body: content ?? message.typeName.flatMap { templates.text(ofType: $0, language: language) }
                ?? templates.generic(language: language),
            isForcedText: forced != nil)
    }

    /// The title of an alert without one, by the app's rule.
    private static func ownTitle(
        _ message: borrowing Message, nick: String?, _ rules: borrowing PayloadRules
    ) -> String? {
        switch rules.title {
        case .absent: nil
        case .nick: nick
        case .conversation: message.conversation.name.map(PlainText.name).flatMap { $0.isEmpty ? nil : $0 } ?? nick
        }
    }

    private static func shown(_ text: String) -> String? {
        let text = PlainText.body(text)
        return BlankText.showsNothing(text) ? nil : text
    }
}
