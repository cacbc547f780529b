// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Redis

/// Which slot a key has, what a map of slots may be, and where a redirect leads.
struct SlotMapTests {
    /// Known answers: the specification's own (`123456789` is 0x31C3), and what redis-server 7.0.15 says (CLUSTER KEYSLOT).
    static let slots: [(String, UInt16)] = [
        ("123456789", 0x31C3), ("", 0), ("foo", 12182), ("bar", 5061), ("{foo}bar", 12182), ("a{foo}b{bar}", 12182),
        ("foo{}{bar}", 8363), ("foo{{bar}}zap", 4015), ("foo{bar}{zap}", 5061), ("{bar", 4015), ("foo{bar", 15278),
        ("}foo{bar}", 5061), ("{user1000}.following", 3443), ("{user1000}.followers", 3443),
    ]

    @Test(arguments: slots)
    func aKeyHasTheSlotThatRedisGivesIt(key: String, slot: UInt16) {
        #expect(KeySlot.of(key) == slot)
    }

    @Test func theSlotOfAnyKeyIsThatOfRedis() async throws {
        let server = try RedisServer(arguments: ["--cluster-enabled", "yes", "--cluster-port", "\(try Ports.free())"])
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let letters: [Character] = ["a", "b", "{", "}", ":", "{", "}"]
            let length = Int.random(in: 1...12, using: &random)
            let key = String((0..<length).map { _ in letters.randomElement(using: &random) ?? "a" })
            let answer = try server.command("CLUSTER KEYSLOT \(key)")
            #expect(answer == ":\(KeySlot.of(key))", "\(key), seed \(seed)")
        }
    }

    @Test func theSlotOfATagIsThatOfItsKeys() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let letters: [Character] = ["a", "b", "{", "}", ":"]
            let names = (0..<2).map { _ in
                let length = Int.random(in: 1...6, using: &random)
                return String((0..<length).map { _ in letters.randomElement(using: &random) ?? "a" })
            }
            // An app's id that begins with a closing brace would leave no tag; the configuration takes none.
            if names[0].hasPrefix("}") { continue }
            let key = "c:s:{\(names[0]):\(names[1])}"
            #expect(KeySlot.of(tag: names[0], names[1]) == KeySlot.of(key), "\(key), seed \(seed)")
        }
    }

    // MARK: Maps

    private static func map(_ resp: String) throws -> SlotMap? {
        var reader = try ReplyReader(replyBytesMax: 1 << 20)
        Array(resp.utf8).withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                reader.feed(UnsafeRawBufferPointer(rebasing: rest.prefix(1024)))
                rest = rest.dropFirst(1024)
            }
        }
        guard reader.next() == .reply else { return nil }
        return SlotMap(RedisReply(reader.arena, 0), asker: "asked.example")
    }

    private static func range(_ first: Int, _ last: Int, _ host: String?, _ port: Int) -> String {
        let name = host.map { "$\($0.utf8.count)\r\n\($0)\r\n" } ?? "$-1\r\n"
        return "*3\r\n:\(first)\r\n:\(last)\r\n*4\r\n\(name):\(port)\r\n$2\r\nid\r\n*0\r\n"
    }

    private static func reply(_ ranges: String...) -> String { "*\(ranges.count)\r\n" + ranges.joined() }

    @Test func aMapNamesTheMasterOfEachRange() throws {
        let map = try Self.map(
            Self.reply(
                Self.range(8192, 16383, "10.0.0.2", 7001), Self.range(0, 100, "h.example", 7000),
                Self.range(101, 8191, "::1", 7002)))
        #expect(map?.ranges.map(\.slots) == [0...100, 101...8191, 8192...16383])
        #expect(map?.masters.map(\.description) == ["h.example:7000", "[::1]:7002", "10.0.0.2:7001"])
        #expect(map?.servedCount == 16384)
    }

    @Test func aNodeWithoutANameIsWhereTheOneAskedIs() throws {
        for host in [nil, ""] {
            let map = try Self.map(Self.reply(Self.range(0, 16383, host, 7000)))
            #expect(map?.masters == [NodeAddress(host: "asked.example", port: 7000)])
        }
    }

    /// The cluster prefers host names, and this node has none.
    @Test func `a node without the preferred name is at its IP address, or is the one asked`() throws {
        func map(_ facts: String) throws -> SlotMap? {
            try Self.map("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$1\r\n?\r\n:7000\r\n$2\r\nid\r\n\(facts)")
        }
        let named = try map("*2\r\n$2\r\nip\r\n$8\r\n10.0.0.9\r\n")
        #expect(named?.masters == [NodeAddress(host: "10.0.0.9", port: 7000)])
        for facts in ["*0\r\n", "*2\r\n$2\r\nip\r\n$0\r\n\r\n", "*2\r\n$3\r\nzip\r\n$8\r\n10.0.0.9\r\n"] {
            #expect(try map(facts)?.masters == [NodeAddress(host: "asked.example", port: 7000)], "\(facts)")
        }
        #expect(try map("*2\r\n$2\r\nip\r\n$3\r\na b\r\n") == nil)
    }

    @Test func `the members of a cluster without preferred names are at their IP addresses`() throws {
        let asked = try RedisEndpoint(url: "redis://10.0.0.8:7000")
        let facts: [RedisAnswer] = [.text("?"), .number(7001), .text("id"), .list([.text("ip"), .text("10.0.0.9")])]
        let own: [RedisAnswer] = [.text("?"), .number(7000), .text("me"), .list([])]
        let answer = RedisAnswer.list([.list([.number(0), .number(16383), .list(own), .list(facts)])])
        let members = try RedisClusterMember.all(in: answer, asked: asked, seeds: [asked])
        #expect(members.map { "\($0.endpoint)" } == ["redis://10.0.0.8:7000/0", "redis://10.0.0.9:7001/0"])
    }

    @Test(arguments: [
        "*0\r\n", ":1\r\n", "$-1\r\n", "*1\r\n*0\r\n", "*1\r\n:1\r\n", reply(range(5, 4, "h", 1)),
        reply(range(-1, 4, "h", 1)),
        reply(range(0, 16384, "h", 1)), reply(range(0, 1, "h", 0)), reply(range(0, 1, "h", 65536)),
        reply(range(0, 1, "h", -1)), reply(range(0, 1, "a b", 1)),
        reply(range(0, 1, "a/../b", 1)), reply(range(0, 1, "a\tb", 1)),
        reply(range(0, 1, String(repeating: "h", count: 254), 1)),
        reply(range(0, 5, "h", 1), range(5, 9, "i", 1)), reply(range(0, 9, "h", 1), range(2, 3, "i", 1)),
        "*1\r\n*3\r\n:0\r\n:1\r\n$1\r\nh\r\n", "*1\r\n*2\r\n:0\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n$1\r\nh\r\n",
        "*1\r\n*3\r\n$1\r\n0\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:7\r\n:1\r\n",
    ])
    func anInvalidMapIsRefused(resp: String) throws {
        #expect(try Self.map(resp) == nil)
    }

    @Test func moreMastersThanAClusterHasAreRefused() throws {
        let ranges = (0...SlotMap.mastersMax).map { Self.range($0, $0, "h", 1 + $0) }
        #expect(try Self.map("*\(ranges.count)\r\n" + ranges.joined()) == nil)
        #expect(
            try Self.map("*\(ranges.count - 1)\r\n" + ranges.dropLast().joined())?.masters.count == SlotMap.mastersMax)
    }

    @Test func clearTextForThisMachineIsNotRedirectedElsewhere() throws {
        let here = try RedisEndpoint(url: "redis://127.0.0.1:7000")
        let safe = try RedisEndpoint(url: "rediss://localhost:7000")
        let far = try RedisEndpoint(url: "redis://10.0.0.1:7000")
        for host in ["127.0.0.2", "localhost", "::1"] {
            #expect(RedisTopology.allows(NodeAddress(host: host, port: 1), namedBy: [here]))
        }
        for host in ["10.0.0.1", "127.0.0.1.example", "localhost.example"] {
            let address = NodeAddress(host: host, port: 1)
            #expect(!RedisTopology.allows(address, namedBy: [here]))
            // Encrypted, or waived by name in the configuration.
            #expect(
                RedisTopology.allows(address, namedBy: [safe]) && RedisTopology.allows(address, namedBy: [here, far]))
        }
    }

    // MARK: Redirects

    private static func redirect(_ text: String) -> Redirect? {
        Array(text.utf8).withUnsafeBytes { Redirect(errorReply: $0, asker: "asked") }
    }

    @Test func aRedirectNamesKindSlotAndNode() {
        let moved = Self.redirect("MOVED 3999 127.0.0.1:6381")
        #expect(
            moved?.kind == .moved && moved?.slot == 3999 && moved?.address == NodeAddress(host: "127.0.0.1", port: 6381)
        )
        let ask = Self.redirect("ASK 0 ::1:6381")
        #expect(ask?.kind == .ask && ask?.slot == 0 && ask?.address == NodeAddress(host: "::1", port: 6381))
        #expect(Self.redirect("MOVED 1 :7")?.address == NodeAddress(host: "asked", port: 7))
    }

    @Test(arguments: [
        "", "MOVED", "MOVED 1", "MOVED x h:1", "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED 1 h", "MOVED 1 h:",
        "MOVED 1 h:0",
        "MOVED 1 h:65536", "MOVED 1 h:18446744073709551617", "ASKED 1 h:1", "moved 1 h:1", "MOVED 1 h\u{0}:1",
    ])
    func anotherErrorIsNoRedirect(text: String) {
        #expect(Self.redirect(text) == nil)
    }

    @Test func aRedirectedCommandContinuesWaitsOrFails() {
        var head = CommandHead(slot: 7, order: .free, sequence: 1, startNanos: 1000)
        func step(_ code: RedisFault.Code, _ text: String = "", now: UInt64 = 1000) -> RedirectRule.Step {
            RedirectRule.step(code, Self.redirect(text), head, nowNanos: now, limitNanos: 500)
        }
        let node = NodeAddress(host: "h", port: 1)
        #expect(step(.moved, "MOVED 7 h:1") == .send(to: node, asking: false))
        #expect(step(.ask, "ASK 7 h:1") == .send(to: node, asking: true))
        #expect(step(.moved, "MOVED 8 h:1") == .wait(nanos: 10_000_000), "not of this slot")
        #expect(step(.moved) == .wait(nanos: 10_000_000))
        for code in [RedisFault.Code.tryAgain, .clusterDown, .loading, .masterDown, .readOnly] {
            #expect(step(code) == .wait(nanos: 10_000_000))
        }
        #expect(step(.moved, "MOVED 7 h:1", now: 1500) == .fail, "its time is over")
        head.tries = RedirectRule.hopsMax
        #expect(step(.moved, "MOVED 7 h:1") == .wait(nanos: 320_000_000), "two nodes that name each other")
        head.tries = .max
        #expect(step(.tryAgain) == .wait(nanos: 320_000_000))
        head = CommandHead(slot: 7, order: .fixed, sequence: 1, startNanos: 1000)
        #expect(step(.moved, "MOVED 7 h:1") == .fail, "what follows it may have run")
    }

    // MARK: What waits

    private static func command(_ sequence: UInt64, slot: UInt16, startNanos: UInt64 = 0) -> KeptCommand {
        KeptCommand(
            call: NodeCall(
                head: CommandHead(slot: slot, order: .free, sequence: sequence, startNanos: startNanos), tag: sequence,
                operation: 0, script: nil, argumentCount: 1), encoded: [1, 2, 3])
    }

    @Test func heldCommandsOfASlotGoOnInTheirOrder() {
        var held = HeldSlots()
        held.hold(Self.command(3, slot: 1), untilNanos: 50, because: RedisFault(.tryAgain))
        held.append(Self.command(9, slot: 1))
        held.hold(Self.command(5, slot: 1), untilNanos: 20, because: RedisFault(.tryAgain))
        held.hold(Self.command(4, slot: 2), untilNanos: 10, because: RedisFault(.moved))
        #expect(held.count == 4 && held.byteCount == 12)
        #expect(held.due(nowNanos: 10) == [2] && held.due(nowNanos: 50) == [1, 2])
        #expect(held.release(1).map(\.head.sequence) == [3, 5, 9])
        #expect(!held.holds(1) && held.holds(2) && held.count == 1 && held.byteCount == 3)
    }

    @Test func aFencedSlotWaitsForTheNodeThatHadIt() {
        var held = HeldSlots()
        held.fence(1)
        held.fence(1)
        held.append(Self.command(1, slot: 1))
        held.unfence(1)
        #expect(held.due(nowNanos: .max).isEmpty)
        held.unfence(1)
        held.unfence(1)
        #expect(held.due(nowNanos: 0) == [1])
        #expect(held.release(1).count == 1 && held.isEmpty)
    }

    @Test func overdueWorkIsTakenOutInOrder() {
        var held = HeldSlots()
        held.hold(Self.command(2, slot: 1, startNanos: 5), untilNanos: 50, because: RedisFault(.tryAgain))
        held.hold(Self.command(1, slot: 2, startNanos: 1), untilNanos: 50, because: RedisFault(.moved))
        held.hold(Self.command(3, slot: 1, startNanos: 9), untilNanos: 50, because: RedisFault(.clusterDown))
        let expired = held.takeExpired(startedBefore: 6)
        #expect(expired.map(\.command.head.sequence) == [1, 2])
        #expect(held.count == 1 && held.byteCount == 3 && held.holds(1) && held.holds(2))
    }
}
