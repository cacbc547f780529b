// SPDX-License-Identifier: Apache-2.0
import Digits
import Payload
import PushCore
import Telemetry
import YAML

/// Reads template files, each once. Problems in them have their own lines.
final class TemplatesReader {
    private let problems: ProblemList
    private var known: [String: Templates] = [:]

    /// NIM's limit for the texts of a token's content key.
    private static let contentKeysMax = 100

    init(problems: ProblemList) {
        self.problems = problems
    }

    /// - Parameter mark: where the file is named, for a file that cannot be read.
    func read(_ path: String, at mark: YAMLNode.Mark) -> Templates {
        if let templates = known[path] { return templates }
        var templates = Templates()
        switch SmallFile.read(path) {
        case .unreadable(let why): problems.add(mark, "\(path): \(why)")
        case .bytes(let bytes):
            do {
                let document = try YAMLDocument(parsing: bytes, source: path)
                for (key, mark) in document.repeatedKeys { problems.add(mark, "key \"\(key)\" is repeated") }
                templates = read(document.root)
            } catch {
                problems.add(error.mark, error.text)
            }
        }
        known[path] = templates
        return templates
    }

    private func read(_ root: YAMLNode) -> Templates {
        let section = Section(root, path: "", keys: ["languages"], problems: problems)
        guard let languages = section.section("languages", keys: nil) else {
            problems.add(section.mark, "languages is missing")
            return Templates()
        }
        var texts: [String: Templates.Language] = [:]
        for entry in languages.all {
            bound(entry, InputLimit.word)
            texts[entry.key] = language(entry.value, path: "languages.\(entry.key)")
        }
        return Templates(languages: texts)
    }

    private func language(_ node: YAMLNode, path: String) -> Templates.Language {
        let section = Section(
            node, path: path, keys: ["generic", "revoke", "types", "templates", "content_keys", "merged"],
            problems: problems)
        let merged = section.section("merged", keys: PluralCategory.allCases.map(\.rawValue))
        let contentKeys = section.section("content_keys", keys: nil)
        if let contentKeys, contentKeys.all.count > Self.contentKeysMax {
            problems.add(contentKeys.mark, "\(contentKeys.path) has more than \(Self.contentKeysMax) texts")
        }
        for entry in contentKeys?.all ?? [] { bound(entry, InputLimit.word) }
        if let merged, merged["other"] == nil {
            problems.add(merged.mark, "\(merged.path) needs other: it serves every number without a form of its own")
        }
        return Templates.Language(
            generic: section.string("generic"),
            types: texts(section.section("types", keys: nil)),
            contentKeys: texts(contentKeys),
            merged: texts(merged),
            revoke: section.string("revoke"),
            templates: templates(section.section("templates", keys: nil)))
    }

    private func templates(_ section: Section?) -> [UTF8Key: Templates.Template] {
        guard let section else { return [:] }
        var templates: [UTF8Key: Templates.Template] = [:]
        for entry in section.all {
            bound(entry, InputLimit.name)
            let path = "\(section.path).\(entry.key)"
            let texts = Section(entry.value, path: path, keys: ["title", "content"], problems: problems)
            let template = Templates.Template(title: texts.string("title"), content: texts.string("content"))
            if template.title == nil, template.content == nil {
                problems.add(entry.keyMark, "\(path) needs a title or a content")
            }
            templates[UTF8Key(entry.key)] = template
        }
        return templates
    }

    /// No record could name a longer key.
    private func bound(_ entry: YAMLNode.Entry, _ bytes: Int) {
        if entry.key.utf8.count > bytes { problems.add(entry.keyMark, "a name is longer than \(bytes) bytes") }
    }

    private func texts(_ section: Section?) -> [String: String] {
        guard let section else { return [:] }
        var texts: [String: String] = [:]
        for entry in section.all {
            if let text = section.string(entry.key) { texts[entry.key] = text }
        }
        return texts
    }
}
