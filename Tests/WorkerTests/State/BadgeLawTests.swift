// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

/// A fact about one user's badge, in whatever order it comes.
enum BadgeEvent: Sendable, CustomStringConvertible {
    case message(id: String, conversation: String, sent: Int64, seq: Int64?)
    case revoke(id: String, conversation: String, sent: Int64, target: String, badge: Message.Revoke.Badge)
    case read(conversation: String, mark: UserState.ReadMark, at: Int64)
    case report(clientMs: Int64, value: Int64)

    var description: String {
        switch self {
        case .message(let id, let conversation, let sent, let seq):
            "message \(id) \(conversation) @\(sent) #\(seq ?? -1)"
        case .revoke(_, _, let sent, let target, let badge): "revoke \(target) @\(sent) \(badge.rawValue)"
        case .read(let conversation, let mark, let at):
            "read \(conversation) to #\(mark.seq ?? -1) ms \(mark.ms ?? -1) @\(at)"
        case .report(let clientMs, let value): "report \(value) @\(clientMs)"
        }
    }

    /// Nil: it moves nothing.
    var fact: BadgeLedger.Fact? {
        switch self {
        case .message(let id, let conversation, let sent, let seq):
            .counted(msgID: id, conversation: conversation, seq: seq, sentMs: sent)
        case .revoke(_, _, let sent, let target, .decrease): .revoke(target: target, sentMs: sent)
        case .revoke(let id, let conversation, let sent, _, .count):
            .counted(msgID: id, conversation: conversation, seq: nil, sentMs: sent)
        case .revoke(_, _, _, _, .keep): nil
        case .read(let conversation, let mark, let at): .read(conversation: conversation, upTo: mark, sentMs: at)
        case .report(let clientMs, let value): .report(value: value, clientMs: clientMs)
        }
    }
}

/// The law said a second time, as plainly as possible: what the client reported, less what went after the report and was
/// in it (never below nothing), and on top all later messages that are still unread.
struct NaiveBadge {
    private var reported: Int64 = 0
    private var taken: Int64 = 0
    private var later: Int64 = 0

    var value: Int64 { max(0, reported - taken) + later }

    init(_ events: [BadgeEvent]) {
        var report: (Int64, Int64)?
        for case .report(let clientMs, let value) in events where report.map({ $0 < (clientMs, value) }) ?? true {
            report = (clientMs, value)
        }
        reported = report?.1 ?? 0
        let since = report?.0 ?? -1
        var seen: Set<String> = []
        let counted = events.compactMap { event -> (String, String, Int64, Int64?)? in
            switch event {
            case .message(let id, let conversation, let sent, let seq): (id, conversation, sent, seq)
            case .revoke(let id, let conversation, let sent, _, .count): (id, conversation, sent, nil)
            case .revoke, .read, .report: nil
            }
        }
        for (id, conversation, sent, seq) in counted where seen.insert(id).inserted {
            var gone: Int64?
            for event in events {
                switch event {
                case .revoke(_, _, let at, let target, .decrease) where target == id: gone = min(at, gone ?? at)
                case .read(conversation, let mark, let at) where mark.covers(seq: seq, sentMs: sent):
                    gone = min(at, gone ?? at)
                case .message, .revoke, .read, .report: break
                }
            }
            if sent > since { later += gone == nil ? 1 : 0 } else if let gone, gone > since { taken += 1 }
        }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct BadgeLawTests {
    static func events(_ random: inout SeededGenerator) -> [BadgeEvent] {
        let base = StateWorld.base
        var events: [BadgeEvent] = []
        func time(_ span: Int64) -> Int64 { base + Int64.random(in: 0...span, using: &random) }
        func conversation() -> String { Bool.random(using: &random) ? "a" : "b" }
        for index in 0..<Int.random(in: 1...7, using: &random) {
            let seqs: [Int64?] = [nil, .random(in: 1...20, using: &random), 9, 10, 9_007_199_254_740_993]
            events.append(
                .message(
                    id: "m\(index)", conversation: conversation(), sent: time(40),
                    seq: seqs.randomElement(using: &random) ?? nil))
        }
        for index in 0..<Int.random(in: 0...2, using: &random) {
            guard case .message(let id, let conversation, _, _) = events.randomElement(using: &random) else { continue }
            let badges: [Message.Revoke.Badge] = [.decrease, .decrease, .keep, .count]
            events.append(
                .revoke(
                    id: "v\(index)", conversation: conversation, sent: time(50), target: id,
                    badge: badges.randomElement(using: &random) ?? .decrease))
        }
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let kind = Int.random(in: 0...2, using: &random)
            let seqs: [Int64] = [.random(in: 1...20, using: &random), 9_007_199_254_740_992, 9_007_199_254_740_993]
            let mark = UserState.ReadMark(
                seq: kind == 1 ? nil : seqs.randomElement(using: &random), ms: kind == 0 ? nil : time(40))
            events.append(.read(conversation: conversation(), mark: mark, at: time(50)))
        }
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            events.append(.report(clientMs: time(50), value: .random(in: 0...5, using: &random)))
        }
        return events
    }

    static func apply(_ event: BadgeEvent, to uid: String, in world: StateWorld) async throws {
        switch event {
        case .message(let id, let conversation, let sent, let seq):
            _ = try await world.claim(.message(uid, id, conversation, sent: sent, seq: seq))
        case .revoke(let id, let conversation, let sent, let target, let badge):
            _ = try await world.claim(.revoke(uid, id, conversation, sent: sent, target: target, badge: badge))
        case .read(let conversation, let mark, let at):
            try await world.change(uid, .read(conversation: conversation, upTo: mark), at: at - StateWorld.base)
        case .report(let clientMs, let value):
            try await world.change(uid, .badgeReport(device: "d", value: value, clientMs: clientMs))
        }
    }

    /// 60 seeds, 5 worlds each: 300 lists of facts, in 3 orders with repeats.
    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func anyOrderWithRepeatsGivesTheSameBadge(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let world = try StateWorld()
        try await world.connect()
        for round in 0..<5 {
            let events = Self.events(&random)
            let naive = NaiveBadge(events)
            var model = BadgeLedger()
            for case let fact? in events.map(\.fact) { model.apply(fact) }
            #expect(model.value == naive.value, "seed \(seed) \(events)")
            for order in 0..<3 {
                let uid = "u\(round)-\(order)"
                let again = events.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                let told = (events + again).shuffled(using: &random)
                for event in told { try await Self.apply(event, to: uid, in: world) }
                #expect(try await world.badge(uid) == naive.value, "seed \(seed) order \(told)")
            }
        }
        await world.end()
    }

    @Test func aLateReportNeverWipesLaterMessages() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        for index in 1...3 as ClosedRange<Int64> {
            let reply = try await world.claim(.message("u", "m\(index)", "c", sent: base + index * 10))
            #expect(reply == ClaimReply(state: .fresh, badge: index, adds: true))
        }
        // As of 15 the client knew of one message, and says 4 with its own.
        let outcome = try await world.change("u", .badgeReport(device: "d", value: 4, clientMs: base + 15))
        #expect(outcome == .applied(.badge(6, before: 3)))
        let older = try await world.change("u", .badgeReport(device: "d", value: 0, clientMs: base + 14))
        #expect(older == .ignored(.stale))
        await world.end()
    }

    @Test func aReadNotLaterThanTheReportTakesOnlyWhatCameAfterIt() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        _ = try await world.claim(.message("u", "m1", "c", sent: base + 10))
        _ = try await world.claim(.message("u", "m2", "c", sent: base + 30))
        try await world.change("u", .badgeReport(device: "d", value: 5, clientMs: base + 20))
        let read = UserState.Change.read(conversation: "c", upTo: .init(ms: base + 40))
        #expect(try await world.change("u", read, at: 20) == .applied(.badge(5, before: 6)))
        #expect(try await world.change("u", read, at: 20) == .repeated)
        await world.end()
    }

    @Test func messagesBeforeTheReportDoNotHideLaterOnes() async throws {
        let world = try StateWorld()
        try await world.connect()
        let base = StateWorld.base
        _ = try await world.claim(.message("u", "m1", "c", sent: base + 10))
        // The client has read all of it and says so; its receipt is a little younger than its report.
        try await world.change("u", .badgeReport(device: "d", value: 0, clientMs: base + 20))
        let read = UserState.Change.read(conversation: "c", upTo: .init(ms: base + 10))
        #expect(try await world.change("u", read, at: 21) == .applied(.badge(0, before: 0)))
        #expect(try await world.claim(.message("u", "m2", "c", sent: base + 30)).badge == 1)
        await world.end()
    }
}

extension ClaimRequest {
    static func message(
        _ uid: String, _ id: String, _ conversation: String, sent: Int64, seq: Int64? = nil, counted: Bool = true
    ) -> ClaimRequest {
        let subject = ClaimSubject(
            kind: .message, id: id, conversation: conversation, sentMs: sent, seq: seq, expireAtMs: StateWorld.base)
        return ClaimRequest(
            app: StateWorld.app, uid: uid, subject, counted: counted, nowMs: StateWorld.base + 1000)
    }

    static func revoke(
        _ uid: String, _ id: String, _ conversation: String, sent: Int64, target: String, badge: Message.Revoke.Badge
    ) -> ClaimRequest {
        let subject = ClaimSubject(
            kind: .revoke, id: id, conversation: conversation, sentMs: sent,
            revoke: Message.Revoke(targetMsgID: target, badge: badge), expireAtMs: StateWorld.base)
        return ClaimRequest(
            app: StateWorld.app, uid: uid, subject, counted: badge == .count, nowMs: StateWorld.base + 1000)
    }
}

extension StateWorld {
    /// The badge as `carillon user` reads it.
    func badge(_ uid: String) async throws -> Int64 {
        let unused: UInt64 = .max
        let reading = try await ask(
            { try $0.readBadge(app: Self.app, uid: uid, baseTag: $1, sizeTag: unused) }, { BadgeReading(base: $0) })
        let size = try await raw("ZCARD", "c:l:{\(Self.app):\(uid)}")
        return reading.badge(size: size ?? 0)
    }
}
