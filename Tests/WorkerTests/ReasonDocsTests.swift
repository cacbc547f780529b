// SPDX-License-Identifier: Apache-2.0
import Console
import Foundation
import PushCore
import Support
import Testing

@testable import APNs
@testable import Worker

/// `docs/reasons.md` names every reason of the code and none that it does not have.
struct ReasonDocsTests {
    /// The first cells of the tables of a section, without their code marks; in the order of the file.
    private static func names(_ title: String) throws -> [String] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(contentsOf: root.appendingPathComponent("docs/reasons.md"), encoding: .utf8)
        let sections = text.components(separatedBy: "\n## ")
        let section = try #require(sections.first { $0.hasPrefix(title + "\n") }, "no section \(title)")
        return section.split(separator: "\n").filter { $0.hasPrefix("| `") }.compactMap { line in
            line.split(separator: "`", omittingEmptySubsequences: false).dropFirst().first.map(String.init)
        }
    }

    private static let rows: [(String, [String])] = [
        ("Results", Reason.allCases.map(\.rawValue) + NoAnswer.allCases.map(\.rawValue)),
        ("Waits", TraceWait.allCases.map(\.rawValue)),
        ("Parked", ParkCause.allCases.map(\.rawValue)),
        ("APNs", Array(Set(AnswerTable.rules.map(\.reason)))),
        ("Removed tokens", RemovalBrake.Cause.allCases.map(\.label)),
        ("SMS", SMSRecord.Reason.allCases.map(\.rawValue)),
        ("User state", StateOutcome.Ignored.allCases.map(\.rawValue)),
        ("Dead letters", BadRecord.Rule.allCases.map(\.rawValue)),
        ("Exit codes", ExitCode.allCases.map { String($0.rawValue) }),
    ]

    @Test(arguments: rows) func everyReasonIsDocumentedOnce(section: String, reasons: [String]) throws {
        let names = try Self.names(section)
        #expect(names.sorted() == reasons.sorted())
    }
}
