/// An app's built-in texts per language (contract section 8, `templates`); a plain value that configuration fills.
public struct Templates: Sendable, Equatable {
    public var languages: [String: Language]
    /// Where a language has no text of its own.
    public var defaultLanguage: String

    /// The texts of one language.
    public struct Language: Sendable, Equatable {
        /// Also what those read who hide details.
        public var generic: String?
        /// By `type_name`.
        public var types: [String: String]
        /// By a token's `content_key`, for those who hide details.
        public var contentKeys: [String: String]
        /// By plural category (`one`, `few`, `many`, `other` …), with `{count}` in it.
        public var merged: [String: String]

        public init(
            generic: String? = nil, types: [String: String] = [:], contentKeys: [String: String] = [:],
            merged: [String: String] = [:]
        ) {
            self.generic = generic
            self.types = types
            self.contentKeys = contentKeys
            self.merged = merged
        }
    }

    /// What stands where configuration says nothing (contract section 5, hidden details).
    public static var builtInGeneric: String { "你收到一条新消息" }

    public init(languages: [String: Language] = [:], defaultLanguage: String = "zh-Hans") {
        self.languages = languages
        self.defaultLanguage = defaultLanguage
    }

    /// The built-in text of a type, in the language or the nearest to it; nil: the type has none.
    public func text(ofType type: String, language: String) -> String? {
        first(language) { $0.types[type] }
    }

    public func generic(language: String) -> String {
        first(language) { $0.generic } ?? Self.builtInGeneric
    }

    /// What one who hides details reads instead of title, name and content.
    public func hidden(contentKey: String?, language: String) -> String {
        if let contentKey, let text = first(language, { $0.contentKeys[contentKey] }) { return text }
        return generic(language: language)
    }

    /// `zh-Hans-CN` asks `zh-Hans-CN`, `zh-Hans`, `zh`, then the default language.
    private func first(_ language: String, _ pick: (Language) -> String?) -> String? {
        var name = Substring(language)
        while !name.isEmpty {
            if let texts = languages[String(name)], let text = pick(texts), !text.isEmpty { return text }
            guard let dash = name.lastIndex(of: "-") else { break }
            name = name[..<dash]
        }
        return languages[defaultLanguage].flatMap(pick).flatMap { $0.isEmpty ? nil : $0 }
    }
}
