// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// What holds of the pipeline's source text, and of what `docs/architecture.md` says about it.
struct PipelineSourceTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    private static let pipeline = root.appendingPathComponent("Sources/Worker/Pipeline")

    private static func text(_ file: URL) throws -> String { try String(contentsOf: file, encoding: .utf8) }

    private static func sources() throws -> [URL] {
        let found = try #require(FileManager.default.enumerator(at: pipeline, includingPropertiesForKeys: nil))
        return found.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
    }

    /// A guard that looks for the work of an answer or a timer, and returns without a word, hides a mistake behind what is only late.
    @Test func aComponentThatDoesNotFindItsWorkSaysWhy() throws {
        let silent = /guard[^{}]*(?:work\.(?:recipient|event|badgeUpdate)|\.find)\([^{}]*else \{\s*return\s*\}/
        for source in try Self.sources() {
            let text = try Self.text(source)
            for match in text.matches(of: silent) {
                Issue.record("\(source.lastPathComponent): \(match.output): shard.late() or shard.mistake()")
            }
        }
    }

    /// The files of the table, without the two that an ordinary push does not pass.
    @Test func theTableOfThePathNamesTheFilesThatThereAre() throws {
        let text = try Self.text(Self.root.appendingPathComponent("docs/architecture.md"))
        let start = try #require(text.firstRange(of: "## The path of a message to one user"))
        let end = try #require(text[start.upperBound...].firstRange(of: "Other paths:"))
        let section = text[start.upperBound..<end.lowerBound]
        let rows = section.split(separator: "\n").filter { $0.first == "|" }
        let names = Set(rows.flatMap { $0.matches(of: /`(?:\w+\/)?([\w+]+\.swift)`/).map { String($0.output.1) } })
        let there = Set(try Self.sources().map(\.lastPathComponent))
        #expect(names.subtracting(there).isEmpty)
        let passed = names.subtracting(["Sender+Check.swift", "Lookup+Leases.swift"]).union(["Pipeline+Answers.swift"])
        let spelled = try #require(NumberFormatter.spelled(passed.count))
        #expect(
            section.replacing("\n", with: " ").contains("and \(spelled) files"), "\(passed.count): \(passed.sorted())")
    }
}

extension NumberFormatter {
    fileprivate static func spelled(_ number: Int) -> String? {
        let formatter = NumberFormatter()
        formatter.locale = Locale(identifier: "en")
        formatter.numberStyle = .spellOut
        return formatter.string(from: NSNumber(value: number))
    }
}
