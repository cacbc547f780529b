// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support
import Testing

/// An actor that lives on a loop, as a shard does.
private actor Shard {
    let loop: Loop
    var count = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ loop: Loop) { self.loop = loop }

    func isOnLoop() -> Bool { loop.isCurrent }

    func add() -> Int {
        count += 1
        return count
    }

    nonisolated func addFromCallback() { assumeIsolated { $0.count += 1 } }
}

private struct Post: Sendable {
    var sender: Int
    var number: Int
}

@Suite(.timeLimit(.minutes(10)))
struct LoopTests {
    @Test func runsAnActorsCodeOnItsThreadAndIsAwaitedFromOutside() async throws {
        let loop = try Loop(name: "actor")
        loop.start()
        let shard = Shard(loop)
        #expect(await shard.isOnLoop())
        #expect(!loop.isCurrent)
        #expect(await shard.add() == 1)
        loop.stop()
    }

    @Test func entersTheActorFromAPostedCallback() async throws {
        let loop = try Loop(name: "assume")
        loop.start()
        let shard = Shard(loop)
        loop.post { shard.addFromCallback() }
        #expect(await shard.add() == 2)
        loop.stop()
    }

    @Test func runsEveryPostOfManyThreadsInEachThreadsOrder() async throws {
        let loop = try Loop(name: "posts")
        loop.start()
        let facts = Facts<Post>()
        await withTaskGroup { group in
            for sender in 0..<4 {
                group.addTask {
                    for number in 0..<5000 {
                        loop.post { facts.record(Post(sender: sender, number: number)) }
                    }
                }
            }
        }
        // Stopping runs what is queued.
        loop.stop()
        for sender in 0..<4 {
            #expect(facts.all.filter { $0.sender == sender }.map(\.number) == Array(0..<5000))
        }
    }

    @Test func runsWhatWasQueuedBeforeTheStop() throws {
        let loop = try Loop(name: "stop")
        let facts = Facts<Int>()
        for number in 0..<100 { loop.post { facts.record(number) } }
        loop.start()
        loop.stop()
        #expect(facts.all == Array(0..<100))
    }

    @Test func stopsFromItsOwnThread() async throws {
        let loop = try Loop(name: "own stop")
        loop.start()
        let facts = Facts<String>()
        loop.post {
            loop.stop()
            facts.record("stopped")
        }
        #expect(try await facts.next() == "stopped")
        loop.stop()
    }

    @Test func keepsOneTimeForAWholeTurn() async throws {
        let test = try TestLoop()
        let (first, second) = await test.run { test in
            let first = test.loop.nowNanos
            let began = Loop.monotonicNanos()
            while Loop.monotonicNanos() == began {}
            return (first, test.loop.nowNanos)
        }
        #expect(first == second)
        #expect(await test.run { $0.loop.nowNanos } > first)
        await test.end()
    }

    @Test func measuresItsLongestTurn() async throws {
        let test = try TestLoop()
        await test.run { _ in
            let end = Loop.monotonicNanos() + 20_000_000
            while Loop.monotonicNanos() < end {}
        }
        await test.run { _ in }
        #expect(test.loop.takeLongestTurnNanos() >= 20_000_000)
        await test.end()
    }

    @Test func tellsReadableDescriptorsUntilCancelled() async throws {
        let test = try TestLoop()
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        let facts = Facts<Int>()
        try await test.run { test in
            test.keep(
                try FDWatcher(loop: test.loop, fd: reader) {
                    var block = [UInt8](repeating: 0, count: 64)
                    facts.record(read(reader, &block, block.count))
                })
        }
        #expect(write(writer, "abc", 3) == 3)
        #expect(try await facts.next() == 3)
        #expect(write(writer, "de", 2) == 2)
        #expect(try await facts.next() == 2)
        await test.end()
        close(reader)
        close(writer)
    }

    @Test func tellsSignals() async throws {
        let test = try TestLoop()
        let facts = Facts<Int32>()
        try await test.run { test in
            test.keep(try SignalWatcher(loop: test.loop, signal: SIGUSR2) { facts.record(SIGUSR2) })
        }
        kill(getpid(), SIGUSR2)
        #expect(try await facts.next() == SIGUSR2)
        await test.end()
    }
}
