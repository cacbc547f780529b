// SPDX-License-Identifier: Apache-2.0
public import Digits
public import PushCore

/// An app's built-in texts per language (contract section 8, `templates`): a plain value from the configuration.
public struct Templates: Sendable, Equatable {
    public var languages: [String: Language] {
        didSet { texts = Self.folded(languages) }
    }
    /// The texts by folded tag, for lookups.
    private var texts: [String: Language]
    /// Used if a language has no text.
    public var defaultLanguage: String

    /// The texts of one language.
    public struct Language: Sendable, Equatable {
        /// Also the text for hidden details.
        public var generic: String?
        /// By `type_name`.
        public var types: [String: String]
        /// By a token's `content_key`, for hidden details.
        public var contentKeys: [String: String]
        /// By plural category (`one`, `few`, `many`, `other` …), with `{count}` in it.
        public var merged: [String: String]
        /// For a revoke without a text of its own; contains `{nick}`.
        public var revoke: String?
        /// By the id that `push.template` names.
        public var templates: [UTF8Key: Template]

        public init(
            generic: String? = nil, types: [String: String] = [:], contentKeys: [String: String] = [:],
            merged: [String: String] = [:], revoke: String? = nil, templates: [UTF8Key: Template] = [:]
        ) {
            self.generic = generic
            self.types = types
            self.contentKeys = contentKeys
            self.merged = merged
            self.revoke = revoke
            self.templates = templates
        }
    }

    /// Title and content with places `{name}`.
    public struct Template: Sendable, Equatable {
        public var title: String?
        public var content: String?

        public init(title: String? = nil, content: String? = nil) {
            self.title = title
            self.content = content
        }

        /// It shows something whatever its arguments are.
        var hasWords: Bool {
            [title, content].contains { text in
                text.map { !BlankText.showsNothing(FilledText.fill($0) { _ in "" }) } ?? false
            }
        }

        /// The names of its places.
        var arguments: Set<UTF8Key> {
            var names: Set<UTF8Key> = []
            for case let text? in [title, content] {
                _ = FilledText.fill(text) { name in
                    names.insert(UTF8Key(String(name)))
                    return ""
                }
            }
            return names
        }
    }

    /// The text if the configuration has none (contract section 5, hidden details).
    public static var builtInGeneric: String { "你收到一条新消息" }

    public init(languages: [String: Language] = [:], defaultLanguage: String = "zh-Hans") {
        self.languages = languages
        texts = Self.folded(languages)
        self.defaultLanguage = defaultLanguage
    }

    /// The built-in text of a type in the language or the nearest one; nil if the type has none.
    public func text(ofType type: String, language: String) -> String? {
        first(language) { $0.types[type] }
    }

    public func generic(language: String) -> String {
        first(language) { $0.generic } ?? Self.builtInGeneric
    }

    /// The text for hidden details, in place of title, name and content.
    ///
    /// - Parameter mergedCount: number of merged messages, which reveals nothing. The text of a content key applies to
    ///   any number.
    public func hidden(contentKey: String?, language: String, mergedCount: Int = 0) -> String {
        if let contentKey, let text = first(language, { $0.contentKeys[contentKey] }) { return text }
        return mergedCount > 1 ? merged(mergedCount, language: language) : generic(language: language)
    }

    /// The text for `count` merged messages, in the plural form of the text's own language.
    ///
    /// A language without a form for the number uses its `other`. If no language has one, the built-in text is used.
    public func merged(_ count: Int, language: String) -> String {
        let text =
            first(language) { texts, tag in
                texts.merged[PluralCategory.of(count, language: tag).rawValue] ?? texts.merged["other"]
            } ?? Self.builtInMerged
        return Self.filled(text, count)
    }

    /// The text if no language has a `merged` text.
    public static var builtInMerged: String { "你收到{count}条新消息" }

    private static func filled(_ text: String, _ count: Int) -> String {
        FilledText.fill(text) { $0 == "count" ? String(count) : nil }
    }

    /// The ids of the templates that show words of their own in a language.
    public var templateIDs: Set<UTF8Key> {
        languages.values.reduce(into: []) { ids, language in
            ids.formUnion(language.templates.lazy.filter { $0.value.hasWords }.map(\.key))
        }
    }

    /// The other ids, with the names of their arguments.
    public var argumentTemplates: [UTF8Key: Set<UTF8Key>] {
        let shown = templateIDs
        return languages.values.reduce(into: [:]) { names, language in
            for (id, template) in language.templates where !shown.contains(id) {
                names[id, default: []].formUnion(template.arguments)
            }
        }
    }

    /// The template in the language or the nearest to it, filled and cut; nil: it is unknown there.
    func filled(_ use: PushOptions.Template, language: String) -> Template? {
        let id = UTF8Key(use.id)
        guard let found = nearest(language, { texts, _ in texts.templates[id] }) else { return nil }
        func fill(_ text: String, limit: Int) -> String {
            let filled = FilledText.fill(text, bytesMax: TextCut.bytes(ofCharacters: limit)) { name in
                use.args[UTF8Key(String(name))] ?? ""
            }
            return TextCut.characters(filled, limit: limit)
        }
        return Template(
            title: found.title.map { fill($0, limit: Self.titleCharacters) },
            content: found.content.map { fill($0, limit: Self.contentCharacters) })
    }

    /// How a message's template fits a language, in words: its language, and arguments that it names and the message lacks.
    public func words(for use: PushOptions.Template, language: String) -> String {
        let id = UTF8Key(use.id)
        let found = nearest(language) { texts, tag in texts.templates[id].map { (template: $0, tag: tag) } }
        guard let found else { return "unknown, so another text is shown" }
        let missing = found.template.arguments.filter { use.args[$0] == nil }.map(\.text).sorted()
        return "in \(found.tag)" + (missing.isEmpty ? "" : ", without its arguments \(missing.joined(separator: ", "))")
    }

    private static let titleCharacters = 100
    private static let contentCharacters = 500

    /// The text of a revoke that brings none: the recipient's language, else the app's default, else English (contract
    /// section 5, Text of a revoke).
    func revoke(nick: String?, language: String) -> String {
        for start in [language, defaultLanguage, RevokeText.lastTag] {
            for tag in LanguageTag.chain(of: start) {
                guard let text = texts[tag]?.revoke, !BlankText.showsNothing(text) else { continue }
                return RevokeText.filled(text, tag, nick: nick)
            }
            if let text = RevokeText.builtIn(start, nick: nick) { return text }
        }
        return RevokeText.english(nick: nick)
    }

    /// The nearest language with texts, in the form for lookups; the default language if there is none.
    ///
    /// - Parameter isRevoke: a language with a built-in text of a revoke has that text.
    func nearest(_ language: String, isRevoke: Bool) -> String {
        for start in [language, defaultLanguage] {
            let chain = LanguageTag.chain(of: start)
            for tag in chain where texts[tag] != nil { return tag }
            guard isRevoke, RevokeText.builtIn(start, nick: nil) != nil else { continue }
            // One for all spellings.
            if let tag = ["zh-hant", "zh", "en"].first(where: { chain.containsSame($0) }) { return tag }
        }
        return defaultLanguage
    }

    func knows(contentKey: String, language: String) -> Bool {
        first(language) { $0.contentKeys[contentKey] } != nil
    }

    private func first(_ language: String, _ pick: (Language) -> String?) -> String? {
        first(language) { texts, _ in pick(texts) }
    }

    /// `zh-Hans-CN` asks `zh-Hans-CN`, `zh-Hans`, `zh`, then the default language in the same way (`LanguageTag.chain`).
    ///
    /// - Parameter pick: receives the texts and their tag.
    private func first(_ language: String, _ pick: (Language, String) -> String?) -> String? {
        // A text that shows nothing is treated as absent.
        nearest(language) { texts, tag in pick(texts, tag).flatMap { BlankText.showsNothing($0) ? nil : $0 } }
    }

    private func nearest<Found>(_ language: String, _ pick: (Language, String) -> Found?) -> Found? {
        for start in [language, defaultLanguage] {
            // Mostly there are texts of this very tag.
            let exact = LanguageTag.folded(start)
            if let texts = texts[exact], let found = pick(texts, exact) { return found }
            for tag in LanguageTag.chain(of: start) {
                if let texts = texts[tag], let found = pick(texts, tag) { return found }
            }
        }
        return nil
    }

    private static func folded(_ languages: [String: Language]) -> [String: Language] {
        Dictionary(languages.map { (LanguageTag.folded($0.key), $0.value) }) { first, _ in first }
    }
}
