import JSON
import Processes
import Simulator
import StageWords
import Support
import Testing

/// Phones that go from one user to another: nobody may get the previous owner's pushes on them, whatever Redis forgets.
struct Handover: Sendable {
    let name: String
    let count: Int

    private func former(_ index: Int) -> String { "\(name)-former-\(index)" }
    private func owner(_ index: Int) -> String { "\(name)-owner-\(index)" }
    private func token(_ index: Int) -> String { StageWords.token(former(index), "phone") }

    var firstBinds: [Line] { (0..<count).map { .bind(former($0), as: token($0)) } }
    var secondBinds: [Line] { (0..<count).map { .bind(owner($0), as: token($0), version: 2) } }
    /// To both of them.
    var messages: [Line] {
        (0..<count).flatMap { index in
            [former(index), owner(index)].map { .message("\($0)-m", to: [$0]) }
        }
    }

    /// Each phone has its owner's message and nothing else.
    func expectOwnersOnly(_ seen: Seen, at place: SourceLocation = #_sourceLocation) {
        func verdict(_ uid: String) -> String { seen.result(of: "\(uid)-m")?["verdict"]?.string ?? "none" }
        let leaked = (0..<count).filter { verdict(former($0)) != "suppressed" }
        #expect(leaked.isEmpty, "previous owners were pushed: \(leaked.prefix(5))", sourceLocation: place)
        let missing = (0..<count).filter { verdict(owner($0)) != "accepted" }
        #expect(missing.isEmpty, "owners were not: \(missing.prefix(5))", sourceLocation: place)
        let extra = (0..<count).filter { seen.accepted(token($0)).count != 1 }
        #expect(extra.isEmpty, "one push per phone: \(extra.prefix(5))", sourceLocation: place)
    }
}

extension RedisServer {
    /// A replica hears of its master no more, as over a line that is cut, after it has heard of all until now.
    func cutFromMaster(_ master: RedisServer) async throws {
        let answer = try await offPool { try master.command("PING\r\nWAIT 1 60000") }
        guard answer.contains(":1") else { throw SetupFault("not copied: \(answer)") }
        try await offPool {
            for line in ["CONFIG SET masterauth nobody", "CLIENT KILL TYPE master"] { _ = try self.command(line) }
        }
        try await until("the replica is cut off") {
            try await offPool { try self.command("INFO replication").contains("master_link_status:down") }
        }
    }
}
