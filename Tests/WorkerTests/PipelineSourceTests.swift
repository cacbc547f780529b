// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// What holds of the pipeline's source text.
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
                Issue.record("\(source.lastPathComponent): \(match.output): shard.noteLate() or shard.mistake()")
            }
        }
    }
}
