// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSON
import Processes
import Support
import Testing

@testable import Demo

/// One's own events in the demo, and what it says can be tried there.
struct DemoCommandTests {
    /// An event of an app of its own to a user with an awkward name, one to a group, recorded, and a broken one.
    private static let own = #"""
        {"v":1,"kind":"message","app":"shop","event_id":"e1","sent_ms":1700000000000,"msg_id":"m1","conv":{"id":"c1","type":"p2p"},"from":{"uid":"alice"},"to":{"uids":["bo 'b\""]},"push":{"content":"hi"}}
        {"v":1,"kind":"bind","app":"other","event_id":"b1","sent_ms":1700000000001,"uid":"zoe","token":{"device":"ipad","token":"aabbccdd00112233aabbccdd00112233aabbccdd00112233aabbccdd00112233","env":"sandbox","topic":"com.acme.other","type":"alert","bind_ver":1}}
        {"topic":"im.events","key":"g 2","value":{"v":1,"kind":"message","app":"other","event_id":"e2","sent_ms":1700000000500,"msg_id":"m2","conv":{"id":"g 2","type":"group"},"from":{"uid":"yan"},"push":{"content":"group"}},"timestamp_ms":1}
        {"v":1,"kind":"mess
        """#

    private static func lines(_ text: String) -> [[UInt8]] {
        text.utf8.split(separator: UInt8(ascii: "\n")).map { Array($0) }
    }

    @Test func usersWithoutBindsGetADeviceAndGroupsTheirMembers() throws {
        let world = try OwnWorld(Self.lines(Self.own))
        #expect(
            world.apps.map(\.id) == ["shop", "other"]
                && world.apps.map(\.topics) == [["com.example.demo"], ["com.acme.other"]])
        #expect(world.events.count == 3 && world.madeUp == 3 && world.state.count == 4)
        let binds = try world.state.map { try JSONTree(parsing: $0) }
        #expect(binds.map { $0["uid"]?.string } == ["alice", "bo 'b\"", "yan", "zoe"])
        // Made before anything was sent, so that times move with the events'.
        #expect(binds.dropLast().allSatisfy { ($0["sent_ms"]?.int ?? 0) < 1_700_000_000_000 })
        #expect(Set(binds.compactMap { $0["token"]?["token"]?.string }).count == 4)
    }

    @Test(
        arguments: [
            ("", "it contains no event"), ("{}\n[1]", "no line names an app"),
            (#"{"kind":"read","app":"im","sent_ms":1}"#, "it contains no event"),
            (#"{"kind":"message","app":"im"}"#, "no event has a sent_ms"),
            // What is put into the configuration of the world must mean nothing else there.
            ("{}\n{\"kind\":\"message\",\"app\":\"a: [b\",\"sent_ms\":1}", "line 2: an app id"),
            (#"{"kind":"message","app":"-","sent_ms":1}"#, "line 1: an app id"),
            (#"{"kind":"bind","app":"im","sent_ms":1,"uid":"u","token":{"topic":"a\n  b"}}"#, "line 1: a topic"),
            (
                #"{"kind":"message","app":"a","sent_ms":1}"# + "\n"
                    + #"{"kind":"bind","app":"b","uid":"u","token":{"topic":"t.one"}}"# + "\n"
                    + #"{"kind":"bind","app":"b","uid":"u","token":{"topic":"t.two"}}"#, "app b binds to several"
            ),
            (String(repeating: "{}\n", count: 10_001), "more than 10000 lines"),
        ])
    func anUnplayableRecordSaysWhy(text: String, why: String) {
        do {
            _ = try OwnWorld(Self.lines(text))
            Issue.record("it was taken")
        } catch {
            #expect(error.description.contains(why), "\(error)")
        }
    }

    @Test func wrongWorldsAreWrongUsage() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Array(Self.own.utf8), to: "own.ndjson")
        let none = try CommandRun("demo", "--world", folder.file("nowhere"))
        #expect(none.code == 64 && none.errors.contains("nowhere"))
        let both = try CommandRun("demo", "--world", file, "--events", file)
        #expect(both.code == 64 && both.errors.contains("--events needs a folder"))
    }

    /// What a printed command has to print.
    private static let words = [
        "trace": "accepted", "user": "made-up-iphone", "explain": "accepted-if-sent", "replay": "nothing is lost",
        "send": "accepted", "dlq": "a string does not end", "top": "1 of 1 brokers answer",
        "curl": "carillon_decisions_total{",
    ]

    /// `make demo` calls the program by a path below the repository.
    @Test func aCommandCanBePastedInAnyFolder() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write([], to: "carillon")
        #expect(DemoHints.callable("carillon") == "carillon")
        #expect(DemoHints.callable("/nowhere/carillon") == "/nowhere/carillon")
        let upwards = String(repeating: "../", count: FileManager.default.currentDirectoryPath.count { $0 == "/" })
        #expect(
            DemoHints.callable(upwards + path.dropFirst()) == URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
    }

    @Test func everythingThatIsSaidToBeTriedWorks() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(Array(Self.own.utf8), to: "own.ndjson")
        let words = ["demo", "--world", file, "--keep"]
        let demo = try await offPool {
            try ServerProcess(CommandRun.binary.path, words, readyLine: "all of this stay until ctrl-C")
        }
        let output = demo.takeOutput()
        #expect(output.contains("bo 'b\"/made-up-iphone") && output.contains("zoe/ipad"), "\(output)")
        #expect(output.contains("3 events, 2 outcomes: 2 accepted; 1 dead letter"))
        let lines = output.split(separator: "\n").map(String.init)
        let commands = zip(lines, lines.dropFirst()).filter { $0.0.hasPrefix("# ") }.map(\.1)
        #expect(commands.count == Self.words.count)
        for command in commands {
            let name = command.hasPrefix("curl") ? "curl" : String(command.split(separator: " ")[1])
            if name == "curl", !FinishedProcess.isOnPath("curl") { continue }
            let line = name == "top" ? command + " --once --interval 0.2" : command
            let result = folder.file("result")
            let process = try await offPool {
                // From elsewhere, as it would be pasted.
                try FinishedProcess.run("sh", ["-c", "cd / && { \(line); } >'\(result)' 2>&1 </dev/null"])
            }
            let text = String(decoding: try readFile(result), as: UTF8.self)
            let expected = try #require(Self.words[name], "\(line)")
            #expect(process.exitCode == 0 && text.contains(expected), "\(line)\n\(text)")
        }
        let path = try #require(
            commands.first.flatMap { $0.split(separator: " ").first { $0.hasSuffix("carillon.yaml") } })
        #expect(FileManager.default.fileExists(atPath: String(path)))
        #expect(demo.stop(graceMs: 30_000), "a signal ends it in order")
        #expect(!FileManager.default.fileExists(atPath: String(path)), "all of it is removed")
    }
}
