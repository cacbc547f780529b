// SPDX-License-Identifier: Apache-2.0
import Processes
import Support

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
