// SPDX-License-Identifier: Apache-2.0
import Glibc
import Kafka
import Processes
import Support
import Telemetry
import Testing

@Suite(.timeLimit(.minutes(10)))
struct MockBrokerTests {
    /// A signal that interrupts the mock's poll would end it, and free what others hold.
    @Test func itsThreadTakesNoSignals() throws {
        let broker = try MockBroker()
        defer { withExtendedLifetime(broker) {} }
        // The thread names itself, which it may not have come to yet.
        var masks: [UInt64] = []
        while masks.isEmpty {
            try Task.checkCancellation()
            masks = try signalMasks(ofThreads: "rdk:mock")
        }
        for signal in [SIGINT, SIGTERM, SIGCHLD, SIGPROF] {
            #expect(masks.allSatisfy { $0 & 1 << (UInt64(signal) - 1) != 0 }, "signal \(signal)")
        }
    }

    /// A child's copy of the listener would keep the port, and the mock ends the process if it cannot bind it again.
    @Test func aBrokerGoesDownWhileChildrenStart() async throws {
        let broker = try MockBroker()
        let isOver = Guarded(false)
        async let children: Void = offPool {
            defer { isOver.withLock { $0 = true } }
            for _ in 0..<20 { _ = try FinishedProcess.run("true", []) }
        }
        try await offPool {
            while !isOver.withLock({ $0 }) {
                try broker.setDown(broker: 1)
                try broker.setUp(broker: 1)
            }
        }
        try await children
    }

    private func signalMasks(ofThreads name: String) throws -> [UInt64] {
        let tasks = "/proc/self/task/"
        var masks: [UInt64] = []
        for entry in try #require(FolderEntry.all(in: tasks)) {
            // Threads of other tests come and go.
            guard let own = text(tasks + entry.name + "/comm"), own.hasPrefix(name),
                let status = text(tasks + entry.name + "/status")
            else { continue }
            let line = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") } ?? ""
            masks.append(try #require(UInt64(line.split(whereSeparator: \.isWhitespace).last ?? "", radix: 16)))
        }
        return masks
    }

    private func text(_ path: String) -> String? {
        guard let stream = fopen(path, "r") else { return nil }
        defer { fclose(stream) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        return String(decoding: bytes[..<fread(&bytes, 1, bytes.count, stream)], as: UTF8.self)
    }
}
