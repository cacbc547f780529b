// SPDX-License-Identifier: Apache-2.0
import JSON
package import Testing

/// Phones that go from one user to another: nobody may get the previous owner's pushes on them, whatever Redis forgets.
package struct Handover: Sendable {
    package let name: String
    package let count: Int

    package init(name: String, count: Int) {
        self.name = name
        self.count = count
    }

    private func former(_ index: Int) -> String { "\(name)-former-\(index)" }
    private func owner(_ index: Int) -> String { "\(name)-owner-\(index)" }
    private func token(_ index: Int) -> String { StageWords.token(former(index), "phone") }

    package var firstBinds: [Line] { (0..<count).map { .bind(former($0), as: token($0)) } }
    package var secondBinds: [Line] { (0..<count).map { .bind(owner($0), as: token($0), version: 2) } }
    /// To both of them.
    package var messages: [Line] {
        (0..<count).flatMap { index in
            [former(index), owner(index)].map { .message("\($0)-m", to: [$0]) }
        }
    }

    /// Each phone has its owner's message and nothing else.
    package func expectOwnersOnly(_ seen: Seen, at place: SourceLocation = #_sourceLocation) {
        func verdict(_ uid: String) -> String { seen.result(of: "\(uid)-m")?["verdict"]?.string ?? "none" }
        let leaked = (0..<count).filter { verdict(former($0)) != "suppressed" }
        #expect(leaked.isEmpty, "previous owners were pushed: \(leaked.prefix(5))", sourceLocation: place)
        let missing = (0..<count).filter { verdict(owner($0)) != "accepted" }
        #expect(missing.isEmpty, "owners were not: \(missing.prefix(5))", sourceLocation: place)
        let extra = (0..<count).filter { seen.accepted(token($0)).count != 1 }
        #expect(extra.isEmpty, "one push per phone: \(extra.prefix(5))", sourceLocation: place)
    }
}
