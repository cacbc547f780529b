// SPDX-License-Identifier: Apache-2.0
import Digits

/// A difference between the languages of a template, which is usually a mistake.
public struct TemplateGap: Sendable, Equatable {
    public let language: String
    /// The template's id.
    public let id: String
    public let kind: Kind

    public init(language: String, id: String, kind: Kind) {
        self.language = language
        self.id = id
        self.kind = kind
    }

    public enum Kind: Sendable, Equatable {
        /// The language does not have it; these others do.
        case missing(inOthers: [String])
        /// No other language uses the argument.
        case argument(String)
    }
}

extension Templates {
    /// The languages that lack a template, and arguments that only one of several languages uses. In a fixed order.
    public var templateGaps: [TemplateGap] {
        let ids = languages.values.reduce(into: Set<UTF8Key>()) { $0.formUnion($1.templates.keys) }
        return ids.sorted { $0.text < $1.text }.flatMap(gaps)
    }

    private func gaps(_ id: UTF8Key) -> [TemplateGap] {
        let uses = languages.compactMap { tag, texts in texts.templates[id].map { (tag: tag, names: $0.arguments) } }
            .sorted { $0.tag < $1.tag }
        var gaps: [TemplateGap] = []
        for tag in languages.keys.sorted() where languages[tag]?.templates[id] == nil {
            // A regional language takes the template of its language.
            let chain = LanguageTag.chain(of: tag)
            let isInherited = uses.contains { use in
                LanguageTag.chain(of: use.tag).first.map(chain.containsSame) ?? false
            }
            if isInherited { continue }
            gaps.append(TemplateGap(language: tag, id: id.text, kind: .missing(inOthers: uses.map(\.tag))))
        }
        guard uses.count > 1 else { return gaps }
        for use in uses {
            for name in use.names.sorted(by: { $0.text < $1.text })
            where !uses.contains(where: { $0.tag != use.tag && $0.names.contains(name) }) {
                gaps.append(TemplateGap(language: use.tag, id: id.text, kind: .argument(name.text)))
            }
        }
        return gaps
    }
}
