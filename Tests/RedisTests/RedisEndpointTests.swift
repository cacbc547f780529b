// SPDX-License-Identifier: Apache-2.0
import Redis
import Telemetry
import Testing

struct RedisEndpointTests {
    static let good: [(String, RedisEndpoint)] = [
        ("redis://localhost", RedisEndpoint(.tcp(host: "localhost", port: 6379))),
        ("redis://h:7000/3", RedisEndpoint(.tcp(host: "h", port: 7000), database: 3)),
        ("redis://h/", RedisEndpoint(.tcp(host: "h", port: 6379))),
        ("redis://[::1]:7000", RedisEndpoint(.tcp(host: "::1", port: 7000))),
        ("redis://:p%40ss@h", RedisEndpoint(.tcp(host: "h", port: 6379), password: Secret("p@ss"))),
        (
            "redis://u:a:b@h/1",
            RedisEndpoint(.tcp(host: "h", port: 6379), user: "u", password: Secret("a:b"), database: 1)
        ),
        ("redis://u:a@b@h", RedisEndpoint(.tcp(host: "h", port: 6379), user: "u", password: Secret("a@b"))),
        (
            "rediss://h?ca_file=/etc/ca%20x.pem",
            RedisEndpoint(.tcp(host: "h", port: 6379), usesTLS: true, caFile: "/etc/ca x.pem")
        ),
        ("unix:///run/redis.sock", RedisEndpoint(.unix(path: "/run/redis.sock"))),
        (
            "unix://u:p@/run/r?db=2",
            RedisEndpoint(.unix(path: "/run/r"), user: "u", password: Secret("p"), database: 2)
        ),
    ]

    @Test(arguments: good)
    func aURLNamesPlaceLoginAndDatabase(url: String, expected: RedisEndpoint) throws {
        #expect(try RedisEndpoint(url: url) == expected)
    }

    @Test(arguments: [
        "", "localhost", "http://h", "redis://", "redis://:6379", "redis://h:0", "redis://h:65536", "redis://h:x",
        "redis://h:", "redis://h/x", "redis://h/-1", "redis://hunter2@h", "redis://u:@h", "redis://h#1", "redis://[::1",
        "redis://[::1]x", "redis://h?ca_file=/x", "rediss://h?ca_file=", "redis://h?hunter2=1", "redis://%zz",
        "redis://h%00", "redis://:hunter2%@h", "redis://:hunter2%ff@h", "unix://", "unix:///", "unix://relative",
        "unix:///" + String(repeating: "x", count: 107),
    ])
    func aBrokenURLIsRefusedWithoutQuotingIt(url: String) {
        let fault = #expect(throws: RedisEndpointFault.self) { try RedisEndpoint(url: url) }
        #expect(fault?.description.isEmpty == false)
        #expect(fault?.description.contains("hunter2") == false)
    }

    @Test func anEndpointPrintsWithoutItsLogin() throws {
        let endpoint = try RedisEndpoint(url: "redis://user:hunter2@h:7/4")
        #expect(endpoint.description == "redis://h:7/4")
        var dumped = ""
        dump(endpoint, to: &dumped)
        #expect(!dumped.contains("hunter2"))
    }
}
