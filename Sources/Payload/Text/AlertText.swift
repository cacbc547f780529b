import PushCore

/// What a receiver reads: title and body by the order of the contract (forced > content > built-in of the type > generic).
struct AlertText {
    var title: String?
    var subtitle: String?
    /// The sender's name with what parts it from the body, or empty.
    ///
    /// The two are written one after the other: joined they would be one more string for each push.
    var name = ""
    var body: String
    /// The body is the sender's word for those he forces; it stands above `aps.alert` too.
    var isForcedText = false

    /// - Parameter given: the title that the sender gave, in whatever way (`LiftedKeys`).
    init(_ message: borrowing Message, variant: PayloadVariant, title given: String?, templates: Templates) {
        if variant.isHidden {
            // Title, name, content and the sender's `aps.alert` are all replaced.
            body = templates.hidden(
                contentKey: variant.contentKey, language: variant.language, mergedCount: variant.mergedCount)
            return
        }
        title = given.flatMap(Self.shown)
        if variant.mergedCount > 1 {
            // The number is of them all; a name may stand above it only where all have the same sender.
            if title == nil, message.conversation.type == .p2p, message.push.prefix {
                title = message.from.nick.map(PlainText.name).flatMap { $0.isEmpty ? nil : $0 }
            }
            body = templates.merged(variant.mergedCount, language: variant.language)
            return
        }
        subtitle = message.push.subtitle.flatMap(Self.shown)
        if variant.isForced, let forced = message.push.force.content.flatMap({ Self.shown($0) }) {
            body = forced
            isForcedText = true
        } else if let content = message.push.content.flatMap({ Self.shown($0) }) {
            body = content
        } else {
            body =
                message.typeName.flatMap { templates.text(ofType: $0, language: variant.language) }
                ?? templates.generic(language: variant.language)
        }
        // Cut already when the event was read; the name comes on top, also before forced and built-in text.
        if message.push.prefix, let nick = message.from.nick.map(PlainText.name), !nick.isEmpty {
            name = nick + ": "
        }
    }

    private static func shown(_ text: String) -> String? {
        let text = PlainText.body(text)
        return BlankText.showsNothing(text) ? nil : text
    }
}
