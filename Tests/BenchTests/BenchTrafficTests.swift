// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing

@testable import Bench

@Suite struct BenchTrafficTests {
    @Test func trafficIsJSONOfRealSizeToReceiversWithTokensOfTheirOwn() throws {
        let traffic = BenchTraffic(users: 500, app: "im", topic: "com.example.im")
        var tokens: Set<String> = []
        for user in 0..<500 {
            let token = traffic.token(user)
            #expect(token.utf8.count == 64)
            tokens.insert(token)
            let bind = try JSONTree(parsing: Array(traffic.bind(user, atMs: 1).value.utf8))
            #expect(bind["token"]?["token"]?.string == token)
            #expect(bind["uid"]?.string == traffic.uid(user))
        }
        #expect(tokens.count == 500)
        var bytes = 0
        for number in 0..<1_000 {
            let (key, value) = traffic.message(number, series: "t1-1763600000000", atMs: 1_763_600_000_000)
            let event = try JSONTree(parsing: Array(value.utf8))
            #expect(event["conv"]?["id"]?.string == key)
            #expect(event["from"]?["uid"]?.string != event["to"]?["uids"]?.array?.first?.string, "message \(number)")
            bytes += value.utf8.count
        }
        #expect((350...500).contains(bytes / 1_000), "\(bytes / 1_000) bytes each")
    }
}
