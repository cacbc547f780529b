// SPDX-License-Identifier: Apache-2.0
import Glibc
import JSON
import PushCore
import Testing
import Worker

/// The demo's files are what they claim: readable but for the one record that must not be.
struct DemoFilesTests {
    private func bytes(_ name: String) throws -> [UInt8] {
        let root = #filePath.split(separator: "/Tests/WorkerTests/").first.map(String.init) ?? "."
        let file = try #require(fopen("\(root)/Config/demo/\(name)", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
        return bytes
    }

    private func lines(_ name: String) throws -> [[UInt8]] {
        try bytes(name).split(separator: UInt8(ascii: "\n")).map(Array.init)
    }

    @Test func everyStateRecordIsRead() throws {
        let reader = EventReader(apps: ["im"])
        let ids = try lines("state.ndjson").map { try reader.read($0, of: .userState).id }
        #expect(ids.count > 20 && Set(ids).count == ids.count)
    }

    @Test func everyEventIsReadButOne() throws {
        let reader = EventReader(apps: ["im"])
        var bad: [BadRecord] = []
        var read = 0
        for line in try lines("events.ndjson") {
            do throws(BadRecord) {
                _ = try reader.read(line, of: .events)
                read += 1
            } catch {
                bad.append(error)
            }
        }
        #expect(read > 20)
        #expect(bad.map(\.path) == ["$.server_seq"])
        #expect(bad.map(\.rule) == [.wrongType])
    }

    @Test func theWorldNamesGatewaysPresenceAndGroups() throws {
        let world = try JSONTree(parsing: try bytes("world.json"))
        #expect(world["app"]?.string == "im")
        #expect(world["gateways"]?.array?.isEmpty == false)
        #expect(world["presence"]?.array?.allSatisfy { $0["last"]?.string?.hasPrefix("-") == true } == true)
        #expect(world["groups"]?[0]?["members"]?["leo"]?.int == 5)
    }
}
