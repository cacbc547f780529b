// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Redis

struct PipelineTests {
    private func entry(_ tag: UInt64, deadline: UInt64 = 0, end: UInt64 = 0) -> Pipeline.Entry {
        Pipeline.Entry(purpose: .command, tag: tag, deadlineNanos: deadline, endOffset: end)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func repliesMeetTheirCommandsInOrder(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var pipeline = Pipeline()
        var next: UInt64 = 0
        var expected: UInt64 = 0
        for _ in 0..<20_000 {
            if Int.random(in: 0..<5, using: &random) < 3 {
                pipeline.append(entry(next))
                next += 1
            } else if let got = pipeline.popFirst() {
                #expect(got.tag == expected, "seed \(seed)")
                expected += 1
            } else {
                #expect(next == expected, "seed \(seed)")
            }
            #expect(pipeline.count == Int(next - expected), "seed \(seed)")
        }
    }

    @Test func aReplyWithoutACommandIsNoticed() {
        var pipeline = Pipeline()
        #expect(pipeline.popFirst() == nil)
    }

    @Test func theOldestCommandSetsTheTimer() {
        var pipeline = Pipeline()
        #expect(pipeline.timerFired(nowNanos: 5) == .idle)
        pipeline.append(entry(1, deadline: 10))
        pipeline.append(entry(2, deadline: 20))
        #expect(pipeline.timerFired(nowNanos: 9) == .rearm(atNanos: 10))
        #expect(pipeline.timerFired(nowNanos: 10) == .expired)
        _ = pipeline.popFirst()
        #expect(pipeline.timerFired(nowNanos: 10) == .rearm(atNanos: 20))
    }

    @Test(
        arguments: [
            (100, 50, true, RedisFault.Code.connectionLost(wasSent: false)),
            (100, 99, false, .connectionLost(wasSent: false)),
            (100, 100, false, .connectionLost(wasSent: true)), (100, 100, true, .timeout),
        ] as [(UInt64, UInt64, Bool, RedisFault.Code)])
    func aCommandWithAnUnsentLastByteWasNotSent(end: UInt64, flushed: UInt64, timedOut: Bool, code: RedisFault.Code) {
        let lost = entry(1, deadline: 10, end: end)
        #expect(Pipeline.lossCode(of: lost, flushedOffset: flushed, nowNanos: 10, timedOut: timedOut) == code)
    }

    @Test func aCommandInTimeIsLostWithTheConnectionOfALateOne() {
        let young = entry(1, deadline: 11, end: 5)
        #expect(
            Pipeline.lossCode(of: young, flushedOffset: 5, nowNanos: 10, timedOut: true)
                == .connectionLost(wasSent: true))
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func aByteQueueGivesWhatItTook(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = ByteQueue()
        var model: [UInt8] = []
        for _ in 0..<3000 {
            if Bool.random(using: &random) {
                let piece = (0..<Int.random(in: 0..<400, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                piece.withUnsafeBytes { queue.append($0) }
                model += piece
            } else {
                let length = Int.random(in: 0...min(500, model.count), using: &random)
                let out = queue.withPrefix(length) { Array($0) }
                queue.drop(length)
                #expect(out == Array(model.prefix(length)), "seed \(seed)")
                model.removeFirst(length)
            }
            #expect(queue.count == model.count, "seed \(seed)")
        }
    }
}
