// SPDX-License-Identifier: Apache-2.0
import JSON
package import Simulator
package import Testing

/// Many users with one phone and one message each, and the count of what became of them.
package struct Crowd: Sendable {
    package let name: String
    package let count: Int

    package init(name: String, count: Int) {
        self.name = name
        self.count = count
    }

    package func uid(_ index: Int) -> String { "\(name)-\(index)" }
    package func token(_ index: Int) -> String { StageWords.token(uid(index), "phone") }

    package var binds: [Line] { (0..<count).map { .bind(uid($0)) } }
    package var messages: [Line] { (0..<count).map { .message("\(uid($0))-m", to: [uid($0)]) } }

    /// Accepted pushes per user.
    package func accepted(_ pushes: [LedgerEntry]) -> [Int] {
        var counts: [String: Int] = [:]
        for push in pushes where push.status == 200 { counts[push.token, default: 0] += 1 }
        return (0..<count).map { counts[token($0)] ?? 0 }
    }

    /// Everyone was pushed once and has one result that says so, with badge 1.
    /// - Parameter mayBeToldAgain: partitions moved meanwhile, and their next owner tells what it finds accepted, by its mark
    ///   and so without the number.
    package func expectOnceEach(
        _ seen: Seen, _ what: Comment, mayBeToldAgain: Bool = false, at place: SourceLocation = #_sourceLocation
    ) {
        let accepted = accepted(seen.pushes)
        #expect(accepted.count { $0 == 0 } == 0, what, sourceLocation: place)
        #expect(accepted.count { $0 > 1 } == 0, what, sourceLocation: place)
        expectOneResultEach(seen, what, mayBeToldAgain: mayBeToldAgain, at: place)
    }

    /// Of a Redis that lost its last writes: everyone was pushed and has a result, and few were pushed once more.
    package func expectAtMostWhatWasNotCopied(_ seen: Seen, _ what: String, at place: SourceLocation = #_sourceLocation)
    {
        let accepted = accepted(seen.pushes)
        #expect(accepted.count { $0 == 0 } == 0, "nobody is left out", sourceLocation: place)
        let extra = accepted.reduce(0) { $0 + max(0, $1 - 1) }
        let without = seen.results.count { $0["verdict"]?.string == "accepted" && $0["badge"]?.int == nil }
        #expect(extra <= 40, "a push too many only for who was in hand", sourceLocation: place)
        let users = Set(seen.results.compactMap { $0["uid"]?.string })
        #expect(users.count == count, sourceLocation: place)
        print("\(what): \(extra) extra pushes of \(count), \(without) without a badge")
    }

    package func expectOneResultEach(
        _ seen: Seen, _ what: Comment, mayBeToldAgain: Bool = false, at place: SourceLocation = #_sourceLocation
    ) {
        var outcomes: [String: [String]] = [:]
        for result in seen.results {
            let text = "\(result["verdict"]?.string ?? "") \(result["badge"]?.int ?? 0)"
            outcomes[result["uid"]?.string ?? "", default: []].append(text)
        }
        let others = (0..<count).filter { number in
            let told = outcomes[uid(number)] ?? []
            let again = told.filter { $0 != "accepted 1" }
            return told.count - again.count != 1 || !again.allSatisfy { mayBeToldAgain && $0 == "accepted 0" }
        }
        #expect(
            others.isEmpty, "\(what): \(others.prefix(3).map { "\(uid($0)) \(outcomes[uid($0)] ?? [])" })",
            sourceLocation: place)
    }
}
