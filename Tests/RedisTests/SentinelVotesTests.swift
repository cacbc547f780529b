// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Redis

/// Which master the words of all Sentinels give, as a machine without sockets.
struct SentinelVotesTests {
    private static let old = NodeAddress(host: "10.0.0.1", port: 6379)
    private static let new = NodeAddress(host: "10.0.0.2", port: 6379)
    private static let gone = RedisFault(.timeout, "no reply")

    /// The word of a Sentinel: the old master or the new one, each with its epoch; no answer; or nothing yet.
    enum Word {
        case old(Int64)
        case new(Int64)
        case silent
        case unheard
    }

    private static func votes(_ words: [Word]) -> SentinelVotes {
        var votes = SentinelVotes(count: words.count, masterName: "bells")
        for (number, word) in words.enumerated() {
            switch word {
            case .old(let epoch): votes.answered(number, old, epoch: epoch, nowNanos: 0)
            case .new(let epoch): votes.answered(number, new, epoch: epoch, nowNanos: 0)
            case .silent: votes.failed(number, gone)
            case .unheard: break
            }
        }
        return votes
    }

    @Test(
        arguments: [
            [.old(0), .new(1), .new(1)], [.new(1), .silent, .new(1)], [.new(1), .new(1), .unheard],
            // One of them has not heard of its own master's newer configuration.
            [.new(1), .new(3), .old(2)], [.new(0), .new(0), .old(0)],
        ] as [[Word]])
    func `the master is the one that a majority names at the highest epoch`(words: [Word]) {
        #expect(Self.votes(words).verdict(nowNanos: 1) == .master(Self.new))
    }

    @Test(
        arguments: [
            [.old(0), .silent, .silent], [.old(0), .new(1), .silent],
            // The two have not heard of the failover that the third one knows.
            [.old(1), .old(1), .new(2)], [.old(0), .silent], [.silent],
        ] as [[Word]])
    func `without a majority at the highest epoch there is no master`(words: [Word]) {
        guard case .none(let fault) = Self.votes(words).verdict(nowNanos: 1) else {
            return #expect(Bool(false), "\(words)")
        }
        #expect(fault.text.hasPrefix("no majority of the \(words.count) Sentinels names a master bells: "))
    }

    @Test func `a Sentinel that was not heard yet may complete a majority`() {
        #expect(Self.votes([.old(0), .unheard, .silent]).verdict(nowNanos: 1) == .undecided)
        #expect(Self.votes([.old(0), .unheard, .old(0)]).verdict(nowNanos: 1) == .master(Self.old))
    }

    @Test func `a failed question leaves the last answer until it is too old`() {
        var votes = Self.votes([.old(0), .old(0), .silent])
        votes.failed(0, Self.gone)
        #expect(votes.verdict(nowNanos: SentinelVotes.validNanos - 1) == .master(Self.old))
        guard case .none(let fault) = votes.verdict(nowNanos: SentinelVotes.validNanos) else {
            return #expect(Bool(false))
        }
        #expect(fault.text.hasSuffix("3 give none (timeout: no reply)"), "\(fault.text)")
    }

    @Test func `a Sentinel that names no master has no vote from then on`() {
        var votes = Self.votes([.old(0), .old(0), .silent])
        votes.refused(1, RedisFault(.unreachable, "it knows no master named bells"))
        guard case .none(let fault) = votes.verdict(nowNanos: 1) else { return #expect(Bool(false)) }
        #expect(fault.text.contains("1 name 10.0.0.1:6379 (epoch 0), 2 give none"), "\(fault.text)")
    }
}
