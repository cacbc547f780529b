// SPDX-License-Identifier: Apache-2.0
import YAML

/// Applies `CARILLON__KAFKA__BROKERS=…` to the file's tree: two underscores separate levels, numbers are list indices.
///
/// Names become lower case. Below `kafka.options`, where names contain dots, a single underscore means a dot. A value
/// that begins with `[` or `{` is read as YAML, any other is plain text.
struct EnvironmentOverlay {
    static let prefix = "CARILLON__"
    private static let nameBytesMax = 512

    let problems: ProblemList

    func apply(_ environment: [String: String], to root: YAMLNode) -> YAMLNode {
        var root = root
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) where name.hasPrefix(Self.prefix) {
            let mark = YAMLNode.Mark(source: "environment variable \(name)")
            // Limited before its parts are folded and compared: a file's keys are no longer.
            let path = name.utf8.count > Self.nameBytesMax ? [] : Self.path(String(name.dropFirst(Self.prefix.count)))
            guard !path.isEmpty, !path.contains(""), path.count <= 16 else {
                problems.add(mark, "names no key; write it like CARILLON__KAFKA__BROKERS")
                continue
            }
            guard let node = self.node(value, mark) else { continue }
            root = set(root, path[...], node, mark)
        }
        return root
    }

    private static func path(_ name: String) -> [String] {
        var steps: [String] = []
        var step: [UInt8] = []
        let bytes = Array(name.utf8)
        var at = 0
        while at < bytes.count {
            // The first two of several underscores separate the parts.
            if bytes[at] == UInt8(ascii: "_"), at + 1 < bytes.count, bytes[at + 1] == UInt8(ascii: "_") {
                steps.append(String(decoding: step, as: UTF8.self).lowercased())
                step = []
                at += 2
            } else {
                step.append(bytes[at])
                at += 1
            }
        }
        steps.append(String(decoding: step, as: UTF8.self).lowercased())
        if steps.count > 2, steps[0] == "kafka", steps[1] == "options" || steps[1] == "secret_files" {
            steps = Array(steps[..<2]) + [steps[2...].joined(separator: "__").replacing("_", with: ".")]
        }
        return steps
    }

    private func node(_ value: String, _ mark: YAMLNode.Mark) -> YAMLNode? {
        guard value.hasPrefix("[") || value.hasPrefix("{") else {
            return YAMLNode(.scalar(value, quoted: false), mark: mark)
        }
        do {
            let document = try YAMLDocument(parsing: Array(value.utf8), source: mark.source)
            for (key, mark) in document.repeatedKeys { problems.add(mark, "key \"\(key)\" is repeated") }
            return document.root
        } catch {
            problems.add(mark, error.text)
            return nil
        }
    }

    // The length of the path bounds the recursion.
    private func set(
        _ node: YAMLNode, _ path: ArraySlice<String>, _ value: YAMLNode, _ mark: YAMLNode.Mark
    ) -> YAMLNode {
        guard let step = path.first else { return value }
        let rest = path.dropFirst()
        let nothing = YAMLNode(.scalar("", quoted: false), mark: mark)
        if case .sequence(var items) = node.value {
            guard let index = Int(step), index >= 0, index <= items.count else {
                problems.add(mark, "\"\(step)\" is not an index of a list of \(items.count)")
                return node
            }
            if index == items.count { items.append(nothing) }
            items[index] = set(items[index], rest, value, mark)
            return YAMLNode(.sequence(items), mark: node.mark)
        }
        if node.isNull, step == "0" {
            return YAMLNode(.sequence([set(nothing, rest, value, mark)]), mark: mark)
        }
        var entries: [YAMLNode.Entry] = []
        if case .mapping(let existing) = node.value { entries = existing }
        if let index = entries.firstIndex(where: { $0.key == step }) {
            entries[index].value = set(entries[index].value, rest, value, mark)
        } else {
            entries.append(YAMLNode.Entry(key: step, keyMark: mark, value: set(nothing, rest, value, mark)))
        }
        return YAMLNode(.mapping(entries), mark: node.isNull ? mark : node.mark)
    }
}
