import PushCore

/// What a receiver reads: title and body by the order of the contract (forced > content > built-in of the type > generic).
struct AlertText {
    var title: String?
    var body: String
    /// The body is the sender's word for those he forces; it stands above `aps.alert` too.
    var isForcedText = false

    static let titleMax = 100
    static let contentMax = 500

    init(_ message: borrowing Message, variant: PayloadVariant, templates: Templates) {
        if variant.isHidden {
            // Title, name, content and the sender's `aps.alert` are all replaced.
            body = templates.hidden(contentKey: variant.contentKey, language: variant.language)
            return
        }
        title = message.push.title.flatMap { Self.shown($0, max: Self.titleMax) }
        if variant.isForced, let forced = message.push.force.content.flatMap({ Self.shown($0, max: Self.contentMax) }) {
            body = forced
            isForcedText = true
        } else if let content = message.push.content.flatMap({ Self.shown($0, max: Self.contentMax) }) {
            body = content
        } else {
            body =
                message.typeName.flatMap { templates.text(ofType: $0, language: variant.language) }
                ?? templates.generic(language: variant.language)
        }
        // After cutting, also before forced and built-in text.
        if message.push.prefix, let nick = message.from.nick.map(PlainText.name), !nick.isEmpty {
            body = nick + ": " + body
        }
    }

    private static func shown(_ text: String, max: Int) -> String? {
        let text = TextCut.characters(PlainText.body(text), limit: max)
        return text.isEmpty ? nil : text
    }
}
