// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Processes
import Support
import Testing

/// Commands that start servers, ended before they could stop them.
struct EndAtOnceTests {
    @Test(arguments: [SIGKILL, SIGINT, SIGTERM])
    func benchOfTheClientLeavesNoServer(signal: Int32) async throws {
        let words = ["bench", "--apns", "--events", "2000000"]
        let folder = try await end(words, readyLine: "round 1", by: [signal]) { server in
            let line = try String(contentsOfFile: "/proc/\(server)/cmdline", encoding: .utf8)
            return line.split(separator: "\0").first { $0.hasSuffix("/secrets") }.map { String($0.dropLast(8)) }
        }
        let path = try #require(folder)
        #expect(path.hasPrefix("/tmp/carillon-"))
        if signal == SIGKILL { try FileManager.default.removeItem(atPath: path) }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test(arguments: [SIGKILL, SIGINT])
    func benchOfTwoWorkersLeavesNoServer(signal: Int32) async throws {
        let words = ["bench", "--against", CommandRun.binary.path, "--events", "100000", "--users", "100"]
        let count = try await end(words, readyLine: "round 1", by: [signal]) { server in
            Self.children(of: try #require(Self.parent(of: server))).count
        }
        #expect(count >= 2, "two redis-servers at least")
    }

    @Test func demoLeavesNoServerAtASecondSignal() async throws {
        try await end(["demo", "--keep"], readyLine: "metrics, statusz", by: [SIGINT, SIGTERM]) { _ in }
    }

    /// Starts a command, asks something about its first child, ends it by signals, and waits for the end of all children.
    @discardableResult
    private func end<Fact>(
        _ words: [String], readyLine: String, by signals: [Int32], asking question: (Int32) throws -> Fact
    ) async throws -> Fact {
        let command = try await offPool { try ServerProcess(CommandRun.binary.path, words, readyLine: readyLine) }
        let children = Self.children(of: command.pid)
        let answer = try question(try #require(children.first, "what is not there cannot be left"))
        for signal in signals { command.send(signal) }
        try await until("the command has ended") { !command.isRunning }
        #expect(!command.stop(), "not in order")
        try await until("its children have ended") { children.allSatisfy { Self.parent(of: $0) == nil } }
        return answer
    }

    /// In the order of their ids.
    private static func children(of pid: Int32) -> [Int32] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { Int32($0) }.filter { parent(of: $0) == pid }.sorted()
    }

    /// From `stat` of proc(5): `pid (name) state parent …`; nil where the process is gone or only waits to be reaped.
    private static func parent(of pid: Int32) -> Int32? {
        guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let name = stat.lastIndex(of: ")")
        else { return nil }
        let fields = stat[stat.index(after: name)...].split(separator: " ")
        guard fields.count > 1, fields[0] != "Z" else { return nil }
        return Int32(fields[1])
    }
}
