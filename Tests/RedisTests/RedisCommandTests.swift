// SPDX-License-Identifier: Apache-2.0
import CHiredis
import Support
import Testing

@testable import Redis

struct RedisCommandTests {
    private func encoded(_ build: (inout RedisCommand) -> Void) -> [UInt8] {
        var command = RedisCommand()
        build(&command)
        _ = command.finish()
        return command.withWire { Array($0) }
    }

    /// What hiredis' own formatter makes of the same arguments.
    private func formatted(_ arguments: [[UInt8]]) -> [UInt8] {
        let copies = arguments.map { argument in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: max(1, argument.count))
            for (index, byte) in argument.enumerated() { copy[index] = CChar(bitPattern: byte) }
            return copy
        }
        defer { for copy in copies { copy.deallocate() } }
        var words = copies.map { UnsafePointer<CChar>?($0) }
        let lengths = arguments.map(\.count)
        var target: UnsafeMutablePointer<CChar>?
        let length = redisFormatCommandArgv(&target, Int32(arguments.count), &words, lengths)
        guard let target, length > 0 else { return [] }
        defer { redisFreeCommand(target) }
        return (0..<Int(length)).map { UInt8(bitPattern: target[$0]) }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func commandsAreWrittenAsHiredisWritesThem(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let arguments = (0..<Int.random(in: 1...40, using: &random)).map { _ in
                (0..<[0, 1, 9, 10, 99, 100, 1005][Int.random(in: 0..<7, using: &random)]).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            }
            let wire = encoded { command in
                for argument in arguments { command.arg(argument) }
            }
            #expect(wire == formatted(arguments), "seed \(seed)")
        }
    }

    @Test(arguments: [0, 1, 7, 90, 300, 5000])
    func aHashTagIsWrittenAsItsPartsAre(length: Int) {
        let (app, uid) = (String(repeating: "a", count: length), String(repeating: "ü", count: length))
        let key = Array("c:s:{\(app):\(uid)}x".utf8)
        let wire = encoded { command in
            command.arg("GET")
            command.part("c:s:")
            command.part(hashTag: app, uid)
            command.part("x")
            command.end()
        }
        #expect(wire == formatted([Array("GET".utf8), key]))
    }

    @Test func argumentsOfOneCommandAreTakenOverByAnother() {
        var kept: [UInt8] = []
        let first = encoded { command in
            command.arg("SET")
            let start = command.encodedCount
            command.arg("value")
            command.arg(7)
            kept = command.withArguments(from: start) { Array($0) }
        }
        let second = encoded { command in
            command.arg("SET")
            kept.withUnsafeBytes { command.append(encoded: $0, arguments: 2) }
        }
        #expect(first == second)
        #expect(first == formatted(["SET", "value", "7"].map { Array($0.utf8) }))
    }

    @Test func argumentsOfEveryKindMayBePutTogether() {
        let wire = encoded { command in
            command.arg("SET")
            command.part("p:{")
            command.part(Array("ä".utf8))
            command.part(-7)
            command.part("}")
            command.end()
            command.end()
            command.arg(Int.min)
            command.arg(Int64.max)
            command.arg(0)
            [1, 2].withUnsafeBytes { _ in command.arg(UnsafeRawBufferPointer(start: nil, count: 0)) }
            command.part("open")
        }
        let words = ["SET", "p:{ä-7}", "", String(Int.min), String(Int64.max), "0", "", "open"]
        #expect(wire == formatted(words.map { Array($0.utf8) }))
    }

    @Test func lineEndsInAnArgumentAddNoCommand() {
        let evil = "x\r\n*1\r\n$8\r\nFLUSHALL\r\n"
        let wire = encoded { command in
            command.arg("GET")
            command.arg(evil)
        }
        #expect(wire == Array("*2\r\n$3\r\nGET\r\n$\(evil.utf8.count)\r\n\(evil)\r\n".utf8))
    }

    @Test func aBuilderForgetsItsLastCommand() {
        var command = RedisCommand()
        command.arg("one")
        command.part("left open")
        command.reset()
        #expect(command.finish() == 0)
        command.arg("two")
        #expect(command.count == 1)
    }
}
