// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support
import Telemetry
import Testing

@testable import APNs

/// Two environments in one process, and a server whose clock is another.
@Suite(.timeLimit(.minutes(10))) struct EnvironmentTests {
    /// gorush changed one client's host per push: a burst to both environments sent tokens to the wrong one.
    @Test func aBurstToBothEnvironmentsNeverMeets() async throws {
        let loop = try TestLoop()
        let worlds = try await loop.run { test in
            let worlds = try [World(test.loop), World(test.loop)]
            for world in worlds {
                test.keep(world)
                world.expected = 1000
            }
            for tag in 1...2000 as ClosedRange<UInt64> {
                let world = worlds[Int(tag & 1)]
                #expect(world.client.send(world.push(tag)) == .taken)
            }
            return worlds
        }
        let result: Result<Void, any Error>
        do {
            for world in worlds { try await world.allDone() }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await loop.run { _ in
            for (index, world) in worlds.enumerated() {
                if case .success = result {
                    #expect(world.acceptedCount == 1000 && world.peer.requests.count == 1000)
                    #expect(world.seen.keys.allSatisfy { Int($0 & 1) == index })
                    #expect(world.peer.connections.count == 1)
                }
                world.end()
            }
        }
        await loop.end()
        try result.get()
    }

    private static func date(_ seconds: Int) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 64)
        strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Half a minute is told in a metric only; what would have tokens refused is told to the operator.
    @Test(arguments: [(-30, false), (30, false), (-300, true), (300, true)])
    func theServersClockIsCompared(ahead: Int, isTold: Bool) async throws {
        try await withWorld { loop, world in
            await loop.run { _ in
                world.peer.onRequest = { request, connection in
                    connection.answer(request.stream, 200, date: Self.date(Int(Loop.wallMs() / 1000) + ahead))
                }
                world.send(1...3)
            }
            try await world.allDone()
            await loop.run { _ in
                #expect(world.acceptedCount == 3)
                let skew = world.client.context.metrics.clockSkew.value
                #expect(abs(skew + Double(ahead)) <= 2, "\(skew) s")
                #expect(world.client.credential.hasLoggedSkew == isTold)
            }
        }
    }
}
