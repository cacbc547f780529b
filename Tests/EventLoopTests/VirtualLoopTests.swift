// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem
import Testing

@Suite("A loop in virtual time", .timeLimit(.minutes(1)))
struct VirtualLoopTests {
    @Test func aTimerFiresAtItsVirtualTimeAndNoRealTimePasses() throws {
        let system = SimulatedSystem(seed: 1)
        defer { system.end() }
        let process = system.makeProcess("one", host: "10.0.0.1")
        let loop = try process.makeLoop("one")
        var fired: [UInt64] = []
        let began = process.nowNanos
        var timer: LoopTimer?
        process.run(on: loop) {
            timer = LoopTimer(loop: loop) { fired.append(loop.nowNanos &- began) }
            timer?.arm(afterNanos: 3_600_000_000_000)
        }
        system.run(nanos: 3_599_000_000_000)
        #expect(fired.isEmpty)
        system.run(nanos: 2_000_000_000)
        #expect(fired.count == 1)
        #expect(fired.allSatisfy { $0 >= 3_600_000_000_000 && $0 < 3_600_010_000_000 })
        process.run(on: loop) { timer = nil }
    }

    @Test func aTimerOfAFastClockFiresEarlierInTheWorld() throws {
        let system = SimulatedSystem(seed: 2)
        defer { system.end() }
        let process = system.makeProcess("one", host: "10.0.0.1")
        let loop = try process.makeLoop("one")
        let began = system.nowNanos
        var firedNanos: UInt64 = 0
        var timer: LoopTimer?
        process.run(on: loop) {
            timer = LoopTimer(loop: loop) { firedNanos = system.nowNanos &- began }
            timer?.arm(afterNanos: 1_000_000_000_000)
        }
        process.setDrift(ppm: 1000)
        system.run(nanos: 1_100_000_000_000)
        #expect(firedNanos > 998_000_000_000 && firedNanos < 999_500_000_000)
        process.run(on: loop) { timer = nil }
    }

    @Test func aDescriptorCallsEachTurnWhileItIsReadable() throws {
        let system = SimulatedSystem(seed: 3)
        defer { system.end() }
        let process = system.makeProcess("one", host: "10.0.0.1")
        let loop = try process.makeLoop("one")
        let fd = system.makeDescriptor()
        var calls = 0
        var watcher: FDWatcher?
        process.run(on: loop) {
            watcher = try? FDWatcher(loop: loop, fd: fd) {
                calls += 1
                if calls == 3 { system.setReadable(fd, false) }
                if calls == 4 { watcher?.suspend() }
            }
        }
        system.setReadable(fd, true)
        system.run(nanos: 1_000_000_000)
        #expect(calls == 3)
        system.setReadable(fd, true)
        system.run(nanos: 1_000_000_000)
        #expect(calls == 4)
        process.run(on: loop) { watcher?.resume() }
        system.setReadable(fd, true)
        system.run(nanos: 10_000_000)
        #expect(calls > 4)
        process.run(on: loop) { watcher = nil }
    }

    @Test func workOfAnotherLoopOfTheProcessRunsInATurnOfItsOwn() throws {
        let system = SimulatedSystem(seed: 4)
        defer { system.end() }
        let process = system.makeProcess("one", host: "10.0.0.1")
        let one = try process.makeLoop("one")
        let two = try process.makeLoop("two")
        nonisolated(unsafe) var ran: [String] = []
        process.run(on: one) {
            two.post { ran.append(two.isCurrent && !one.isCurrent ? "two" : "wrong") }
            one.atEndOfTurn { ran.append("one") }
        }
        system.run(nanos: 1_000_000_000)
        #expect(ran == ["one", "two"])
    }

    /// Two ends that send each other numbers until one has seen a thousand.
    private final class Echo: LinkDelegate {
        let link: Link
        var received: [UInt8] = []
        var closed: LinkFault?
        var answers: Bool

        init(_ link: Link, answers: Bool) {
            self.link = link
            self.answers = answers
            link.delegate = self
        }

        func linkDidOpen(_ link: Link) { if !answers { link.write([UInt8](repeating: 7, count: 100_000)) } }
        func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) {
            received.append(contentsOf: bytes)
            if answers { link.write(bytes) }
        }
        func link(_ link: Link, didClose reason: LinkFault) { closed = reason }
    }

    @Test(arguments: [1, 2, 3] as [UInt64]) func bytesArriveInOrderOverASmallWindow(seed: UInt64) throws {
        func run() throws -> (count: Int, fingerprint: UInt64) {
            let system = SimulatedSystem(seed: seed)
            defer { system.end() }
            let server = system.makeProcess("server", host: "10.0.0.2")
            let client = system.makeProcess("client", host: "10.0.0.1")
            let (serverLoop, clientLoop) = (try server.makeLoop("server"), try client.makeLoop("client"))
            system.network.names["server"] = ["10.0.0.2"]
            system.network.path(from: "10.0.0.1", to: "10.0.0.2:80").windowBytes = 1000
            var (peers, listener, own): ([Echo], Listener?, Echo?) = ([], nil, nil)
            server.run(on: serverLoop) {
                listener = try? Listener(loop: serverLoop, host: "10.0.0.2", port: 80) {
                    peers.append(Echo($0, answers: true))
                }
            }
            client.run(on: clientLoop) {
                let link = Link(loop: clientLoop, to: .tcp(host: "server", port: 80))
                own = Echo(link, answers: false)
                link.open()
            }
            #expect(system.run(nanos: 100_000_000_000) { own?.received.count == 100_000 })
            #expect(own?.received.allSatisfy { $0 == 7 } ?? false)
            #expect(listener != nil)
            system.network.cut(to: "10.0.0.2:80")
            system.run(nanos: 1_000_000_000)
            #expect(own?.closed?.reason == .reset && peers.first?.closed?.reason == .reset)
            #expect(system.network.openConnections == 0)
            server.run(on: serverLoop) { (peers, listener) = ([], nil) }
            client.run(on: clientLoop) { own = nil }
            return (system.turns, system.fingerprint)
        }
        let (one, two) = (try run(), try run())
        #expect(one == two)
    }

    @Test func anAddressWithoutAListenerRefusesAndASilentOneTimesOut() throws {
        let system = SimulatedSystem(seed: 5)
        defer { system.end() }
        let client = system.makeProcess("client", host: "10.0.0.1")
        let loop = try client.makeLoop("client")
        system.network.path(from: "10.0.0.1", to: "10.0.0.3:80").heldUntilNanos = .max
        var ends: [Echo] = []
        client.run(on: loop) {
            for host in ["10.0.0.2", "10.0.0.3", "nowhere"] {
                let link = Link(loop: loop, to: .tcp(host: host, port: 80))
                ends.append(Echo(link, answers: false))
                link.open()
            }
        }
        system.run(nanos: 6_000_000_000)
        #expect(ends.map { $0.closed?.reason } == [.refused, .timeout, .dns])
        client.run(on: loop) { ends = [] }
    }
}
