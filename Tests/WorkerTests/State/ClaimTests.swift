// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Redis
import Support
import Testing

@testable import Worker

@Suite(.timeLimit(.minutes(10)))
struct ClaimTests {
    private let base = StateWorld.base

    @Test func aWorldThatATestLeftInTheMiddleEndsWithIt() async throws {
        weak var left: StateWorld?
        do {
            let world = try StateWorld()
            left = world
            try await world.connect()
        }
        #expect(left == nil, "it is gone, and the process lives")
    }

    @Test func aPairIsClaimedOnceAndResumedUntilItIsFinished() async throws {
        let world = try StateWorld()
        try await world.connect()
        let request = ClaimRequest.message("u", "m", "c", sent: base)
        #expect(try await world.claim(request) == ClaimReply(state: .fresh, badge: 1, adds: true))
        #expect(try await world.claim(request) == ClaimReply(state: .resume, badge: 1, adds: true))
        for device in ["d1", "手机;a3:"] {
            let length = try await world.ask(
                {
                    try $0.note(app: StateWorld.app, uid: "u", request.subject, nowMs: base, tag: $1) {
                        $0.part(.accepted, device)
                    }
                }, { $0.int64 })
            #expect((length ?? 0) > 0)
        }
        let resumed = try await world.claim(request)
        #expect(
            resumed
                == ClaimReply(
                    state: .resume, badge: 1,
                    notes: EarlierNotes(accepted: [EarlierPush("d1"), EarlierPush("手机;a3:")]), adds: true))
        // Another kind about the same message is a pair of its own.
        var other = request
        other.subject = ClaimSubject(kind: .liveActivity, id: "m", sentMs: base, expireAtMs: base)
        other.counted = false
        #expect(try await world.claim(other).state == .fresh)
        let mark = try await world.ask(
            { try $0.readMark(app: StateWorld.app, uid: "u", kind: .message, id: "m", tag: $1) }, { PairMark($0) })
        #expect(mark?.state == .resume && mark?.notes?.accepted.count == 2)
        _ = try await world.ask(
            {
                let lasting = ClaimSubject(
                    kind: .message, id: "m", sentMs: base, expireAtMs: base + 3 * 86_400_000)
                let mark = $0.preparedMark(app: StateWorld.app, uid: "u", lasting, nowMs: base)
                try $0.writeMark(mark, tag: $1)
            }, { $0.string })
        #expect(try await world.claim(request) == ClaimReply(state: .ended, badge: nil))
        #expect(try await world.badge("u") == 1)
        let key = "c:d1:{\(StateWorld.app):u}mm"
        #expect(try await world.raw("TTL", key) ?? 0 > 3 * 86_400)
        await world.end()
    }

    // MARK: What a mark says about the records of an earlier try

    @Test func theNoteOfAPushHasItsIdItsNumberAndWhetherItWasForced() async throws {
        let world = try StateWorld()
        try await world.connect()
        let request = ClaimRequest.message("u", "m", "c", sent: base)
        _ = try await world.claim(request)
        let pushes = [
            EarlierPush("d1", PushID(high: 1, low: .max), badge: 3), EarlierPush("d2", PushID(high: .max, low: 2)),
            EarlierPush("d3"), EarlierPush("d4", PushID(high: 3, low: 4), badge: 0, isForced: true),
            EarlierPush("d5", PushID(high: 5, low: 6), isForced: true),
        ]
        for push in pushes {
            _ = try await world.ask(
                {
                    try $0.note(app: StateWorld.app, uid: "u", request.subject, nowMs: base, tag: $1) { command in
                        command.part(.accepted, push.device)
                        if let push = push.note { command.part(.push, push) }
                    }
                }, { $0.int64 })
        }
        #expect(try await world.claim(request).notes?.accepted == pushes)
        await world.end()
    }

    @Test func `a resumed try gets the ends of the devices that ended while it was parked`() async throws {
        let world = try StateWorld()
        try await world.connect()
        let request = ClaimRequest.message("u", "m", "c", sent: base)
        _ = try await world.claim(request)
        let ends = JournalTests.full.entries
        for end in ends {
            _ = try await world.ask(
                {
                    try $0.note(app: StateWorld.app, uid: "u", request.subject, nowMs: base, tag: $1) {
                        $0.part(end, of: end.device ?? "")
                    }
                }, { $0.int64 })
        }
        let notes = try await world.claim(request).notes
        #expect(notes?.ends == ends && notes?.closed == ends.compactMap(\.device))
        await world.end()
    }

    /// (how the earlier try claimed, what happened to the user since) → the devices that may have a record.
    @Test(arguments: [true, false], ["moved", "unbound", "read and moved", "kept", "moved long before"])
    func aDeviceThatLostItsTokenSinceAnEarlierTryIsNamed(isPlain: Bool, story: String) async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.bind("u", "d1", version: 1)
        if story == "moved long before" { try await world.bind("v", "d9", version: 2) }
        let sent = story == "moved long before" ? base + 200_000 : base
        let request = ClaimRequest.message("u", "m", "c", sent: sent, seq: 5)
        _ = isPlain ? try await world.claimPlainly(request) : try await world.claim(request)
        switch story {
        case "moved": try await world.bind("v", "d9", version: 2)
        case "unbound":
            try await world.change("u", .unbind(.init(device: "d1", token: StateWorld.token, version: 1)))
        case "read and moved":
            try await world.change("u", .read(conversation: "c", upTo: .init(seq: 5)), at: 10)
            try await world.bind("v", "d9", version: 2)
        default: break
        }
        var later = request
        later.withoutDevice = WithoutDevice(reason: .noToken, tokens: .alert)
        let reply = try await world.claim(later)
        #expect(reply.state == .resume && reply.notes?.withoutDevice == nil)
        #expect((reply.notes?.addressed ?? []) == (["kept", "moved long before"].contains(story) ? [] : ["d1"]))
        // A token of another type is no device of this message.
        later.withoutDevice = WithoutDevice(reason: .noToken, tokens: .voip)
        #expect(try await world.claim(later).notes == nil)
        await world.end()
    }

    /// The token moved shortly before the message, and the record names no device. A later version may note something else first.
    @Test(arguments: ["", "w3:abc", "Z4:2:d8"])
    func aTryThatRecordedNoDeviceIsRepeatedWithoutThoseThatLostTheirTokens(before note: String) async throws {
        let world = try StateWorld()
        try await world.connect()
        try await world.bind("u", "d1", version: 1)
        try await world.bind("v", "d9", version: 2)
        var request = ClaimRequest.message("u", "m", "c", sent: base)
        request.withoutDevice = WithoutDevice(reason: .noToken, tokens: .alert)
        #expect(try await world.claim(request).state == .fresh)
        try await world.raw("SET", "c:d1:{im:u}mm", "c\(note)n8:no_token")
        let reply = try await world.claim(request)
        #expect(reply.state == .resume && reply.notes?.withoutDevice == .noToken)
        #expect((reply.notes?.addressed ?? []) == [])
        await world.end()
    }

    @Test func atMostSixteenLostTokensAreRemembered() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<20 as Range<Int64> {
            try await world.bind("u", "d\(index)", version: 2 * index)
            try await world.bind("v", "e", version: 2 * index + 1)
        }
        var request = ClaimRequest.message("u", "m", "c", sent: base)
        _ = try await world.claimPlainly(request)
        request.withoutDevice = WithoutDevice(reason: .noToken, tokens: .alert)
        #expect(try await world.claim(request).notes?.addressed == (4..<20).reversed().map { "d\($0)" })
        await world.end()
    }

    @Test(arguments: [true, false])
    func aTryThatRecordsNoDeviceSaysSoInTheMark(isCounted: Bool) async throws {
        let world = try StateWorld()
        try await world.connect()
        var request = ClaimRequest.message("u", "m", "c", sent: base, counted: isCounted)
        request.withoutDevice = WithoutDevice(reason: .dnd, tokens: .alert)
        let fresh = try await world.claim(request)
        #expect(fresh.state == .fresh && fresh.notes?.withoutDevice == nil)
        request.withoutDevice = nil
        let resumed = try await world.claim(request)
        #expect(resumed.state == .resume && resumed.notes?.withoutDevice == .dnd)
        // A revoke that came first has its place in the mark too.
        _ = try await world.claim(.revoke("r", "v", "c", sent: base + 5, target: "m", badge: .decrease))
        request = ClaimRequest.message("r", "m", "c", sent: base)
        request.withoutDevice = WithoutDevice(reason: .noToken, tokens: .alert)
        #expect(try await world.claim(request).isRevoked)
        let revoked = try await world.claim(request)
        #expect(revoked.isRevoked && revoked.notes?.withoutDevice == .noToken)
        await world.end()
    }

    /// Redis took no mark when the recipient was parked.
    @Test func aRepeatFindsThatTheFirstTryIsParkedAndTheReturnCounts() async throws {
        let world = try StateWorld()
        try await world.connect()
        for _ in 0..<2 {
            _ = try await world.ask(
                {
                    try $0.markParked(
                        app: StateWorld.app, uid: "u", kind: .message, id: "m", untilMs: base + 7, tag: $1)
                },
                { $0.string })
        }
        let request = ClaimRequest.message("u", "m", "c", sent: base)
        for _ in 0..<2 {
            let reply = try await world.claim(request)
            #expect(reply.state == .resume && reply.badge == 1 && reply.adds)
            #expect(reply.notes?.wait == EarlierWait(untilMs: base + 7))
        }
        let wait = EarlierWait(untilMs: base + 9, cause: .desktopFirst)
        _ = try await world.ask(
            {
                try $0.note(app: StateWorld.app, uid: "u", request.subject, nowMs: base, tag: $1) {
                    $0.part(.parked, wait.text)
                }
            }, { $0.int64 })
        #expect(try await world.claim(request).notes?.wait == wait)
        try await world.finish(request)
        _ = try await world.ask(
            { try $0.markParked(app: StateWorld.app, uid: "u", kind: .message, id: "m", untilMs: base + 7, tag: $1) },
            { $0.string })
        #expect(try await world.claim(request).state == .ended)
        await world.end()
    }

    /// The message was counted and pushed; the conversation is muted before the next try.
    @Test func anUncountedTryFindsTheEntryOfACountedOne() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claimPlainly(.message("u", "m", "c", sent: base))
        var later = ClaimRequest.message("u", "m", "c", sent: base, counted: false)
        later.withoutDevice = WithoutDevice(reason: .convMuted, tokens: .alert)
        let reply = try await world.claimPlainly(later)
        #expect(reply.state == .resume && reply.notes?.withoutDevice == nil)
        #expect(try await world.badge("u") == 1)
        later = ClaimRequest.message("u", "n", "c", sent: base, counted: false)
        later.withoutDevice = WithoutDevice(reason: .convMuted, tokens: .alert)
        #expect(try await world.claimPlainly(later) == ClaimReply(state: .fresh, badge: nil))
        await world.end()
    }

    @Test func aMessageCountedByALaterClaimCountsOnce() async throws {
        let world = try StateWorld()
        try await world.connect()
        // In the foreground nothing counts; the acknowledgement does not come, and the message is decided again.
        let request = ClaimRequest.message("u", "m", "c", sent: base, counted: false)
        #expect(try await world.claim(request) == ClaimReply(state: .fresh, badge: 0))
        var again = request
        again.counted = true
        #expect(try await world.claim(again) == ClaimReply(state: .resume, badge: 1, adds: true))
        #expect(try await world.claim(again) == ClaimReply(state: .resume, badge: 1, adds: true))
        await world.end()
    }

    @Test func readAndRevokedAreSeenAtTheLastMoment() async throws {
        let world = try StateWorld()
        try await world.connect()
        let request = ClaimRequest.message("u", "m", "c", sent: base, seq: 5)
        _ = try await world.claim(request)
        let read = UserState.Change.read(conversation: "c", upTo: .init(seq: 5))
        #expect(try await world.change("u", read, at: 10) == .applied(.badge(0, before: 1)))
        let seen = try await world.claim(request)
        #expect(seen.isRead && !seen.isRevoked && seen.badge == 0 && seen.state == .resume)
        // A sequence that cannot be compared is unread.
        #expect(try await !world.claim(.message("u", "n", "c", sent: base)).isRead)
        _ = try await world.claim(.revoke("u", "v", "c", sent: base + 1, target: "n", badge: .decrease))
        let revoked = try await world.claim(.message("u", "n", "c", sent: base))
        #expect(revoked.isRevoked && revoked.badge == 0)
        await world.end()
    }

    /// (revoke's badge, whether it comes first) → the badge and whether the target is seen as revoked.
    @Test(arguments: [Message.Revoke.Badge.decrease, .keep, .count], [false, true])
    func aRevokeMeansTheSameInEitherOrder(badge: Message.Revoke.Badge, first: Bool) async throws {
        let world = try StateWorld()
        try await world.connect()
        let message = ClaimRequest.message("u", "m", "c", sent: base)
        let revoke = ClaimRequest.revoke("u", "v", "c", sent: base + 5, target: "m", badge: badge)
        for request in first ? [revoke, message] : [message, revoke] { _ = try await world.claim(request) }
        // Told again it changes nothing.
        _ = try await world.claim(revoke)
        let expected: [Message.Revoke.Badge: Int64] = [.decrease: 0, .keep: 1, .count: 2]
        let again = try await world.claim(message)
        #expect(again.badge == expected[badge] && again.isRevoked && again.state == .resume)
        await world.end()
    }

    @Test func anUncountedMessageIsNotTakenOffByItsRevoke() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claim(.message("u", "other", "c", sent: base))
        _ = try await world.claim(.message("u", "m", "c", sent: base, counted: false))
        let reply = try await world.claim(.revoke("u", "v", "c", sent: base + 1, target: "m", badge: .decrease))
        #expect(reply.badge == 1)
        await world.end()
    }

    /// (what came before the revoke, by name) → whether the revoke lowered the badge. It says so in each claim of the pair:
    /// a push that is tried again says the same.
    @Test(arguments: [
        ("counted", true), ("uncounted", false), ("nothing", false), ("read", false), ("revoked", false),
        ("reported before the revoke", true), ("reported after the revoke", false), ("keep", false), ("count", false),
    ])
    func aRevokesTraceShowsWhetherItLoweredTheBadge(_ story: String, lowers: Bool) async throws {
        let world = try StateWorld()
        try await world.connect()
        let badge: Message.Revoke.Badge = story == "keep" ? .keep : story == "count" ? .count : .decrease
        let revoke = ClaimRequest.revoke("u", "v", "c", sent: base + 50, target: "m", badge: badge)
        if story != "nothing" {
            _ = try await world.claim(.message("u", "m", "c", sent: base, seq: 5, counted: story != "uncounted"))
        }
        switch story {
        case "read": try await world.change("u", .read(conversation: "c", upTo: .init(seq: 5)), at: 10)
        case "revoked":
            _ = try await world.claim(.revoke("u", "w", "c", sent: base + 20, target: "m", badge: .decrease))
        case "reported before the revoke":
            try await world.change("u", .badgeReport(device: "d", value: 3, clientMs: base + 20))
        case "reported after the revoke":
            try await world.change("u", .badgeReport(device: "d", value: 3, clientMs: base + 60))
        default: break
        }
        let before = try await world.badge("u")
        for state in [ClaimReply.State.fresh, .resume, .resume] {
            let reply = try await world.claim(revoke)
            #expect(reply.state == state && reply.lowered == lowers && !reply.owesClear)
            if badge == .decrease { #expect(reply.badge == before - (lowers ? 1 : 0)) }
            _ = try await world.ask(
                {
                    try $0.note(app: StateWorld.app, uid: "u", revoke.subject, nowMs: base, tag: $1) {
                        $0.part(.accepted, "d1")
                    }
                }, { $0.int64 })
        }
        // Where Redis takes no writes the same is seen.
        let seen = try await world.ask({ try $0.peek(revoke, tag: $1) }, { ClaimReply($0) })
        #expect(seen?.lowered == lowers && seen?.notes?.accepted.map(\.device) == ["d1", "d1", "d1"])
        let mark = try await world.ask(
            { try $0.readMark(app: StateWorld.app, uid: "u", kind: .revoke, id: "v", tag: $1) }, { PairMark($0) })
        #expect(mark?.state == .resume && mark?.notes?.accepted.count == 3)
        await world.end()
    }

    /// (what came before) → whether the alert adds 1, for an app with `badge: none` whose decision now says "not counted".
    @Test(arguments: [
        ("nothing", false, false), ("nothing", true, true), ("counted", false, true), ("counted plainly", false, true),
        ("uncounted", true, true), ("reported", true, false),
    ])
    func aClaimSaysWhetherTheMessageAddsOneByThisTryOrAnEarlierOne(_ story: String, counted: Bool, adds: Bool)
        async throws
    {
        let world = try StateWorld()
        try await world.connect()
        func request(_ counted: Bool) -> ClaimRequest {
            let subject = ClaimSubject(
                kind: .message, id: "m", conversation: "c", sentMs: base, expireAtMs: base, clientCounts: true)
            return ClaimRequest(app: StateWorld.app, uid: "u", subject, counted: counted, nowMs: base + 1000)
        }
        switch story {
        case "counted", "uncounted": _ = try await world.claim(request(story == "counted"))
        case "counted plainly":
            let one = request(true)
            _ = try await world.ask({ try $0.addToLedger(one, tag: $1) }, { $0.int64 })
        case "reported": try await world.change("u", .badgeReport(device: "d", value: 3, clientMs: base + 20))
        default: break
        }
        #expect(try await world.dryRun(request(counted)).adds == adds)
        #expect(try await world.claim(request(counted)).adds == adds)
        await world.end()
    }

    @Test(arguments: [
        ("nothing", "x"), ("nothing", "k"), ("claimed", "x"), ("uncounted", "k"), ("plainly", "x"), ("plainly", "k"),
        ("revoked in flight", "k"),
    ])
    func aRevokeSaysWhetherItsTargetIsKnown(_ story: String, mode: String) async throws {
        let world = try StateWorld()
        try await world.connect()
        let target = ClaimRequest.message("u", "m", "c", sent: base, counted: story != "uncounted")
        switch story {
        case "plainly": _ = try await world.ask({ try $0.addToLedger(target, tag: $1) }, { $0.int64 })
        case "revoked in flight":
            _ = try await world.ask({ try $0.addToLedger(target, tag: $1) }, { $0.int64 })
            _ = try await world.claim(.revoke("u", "w", "c", sent: base + 20, target: "m", badge: .decrease))
        case "nothing": break
        default: _ = try await world.claim(target)
        }
        let revoke = ClaimRequest.revoke(
            "u", "v", "c", sent: base + 50, target: "m", badge: mode == "x" ? .decrease : .keep)
        #expect(try await world.dryRun(revoke).isTargetUnknown == (story == "nothing"))
        #expect(try await world.claim(revoke).isTargetUnknown == (story == "nothing"))
        await world.end()
    }

    @Test func theTokenVersionRisesWithEachChangeOfTokens() async throws {
        let world = try StateWorld()
        try await world.connect()
        let request = ClaimRequest.message("u", "m", "c", sent: base)
        let before = try await world.claim(request).tokenVersion
        let token = TokenRecord(
            hex: "aa", environment: .production, topic: "t", type: .alert, boundMs: base)
        try await world.change("u", .bind(.init(device: "d", token: token, version: 1)))
        let bound = try await world.claim(request).tokenVersion
        #expect(bound > before)
        #expect(try await world.recipient("u").version == bound)
        try await world.change("u", .unbind(.init(device: "d", token: "aa", version: 1)))
        #expect(try await world.claim(request).tokenVersion > bound)
        await world.end()
    }

    @Test func identifiersWithBracesAndColonsDoNotMeet() async throws {
        let world = try StateWorld()
        try await world.connect()
        let pairs = [("x", "foo}1mbar"), ("x}mfoo", "1mbar"), ("x}", "mfoo"), ("{x", "m"), ("x\u{0}\r\n", "m")]
        for (uid, id) in pairs {
            #expect(try await world.claim(.message(uid, id, "c{}", sent: base)).state == .fresh, "\(uid) \(id)")
        }
        for (uid, id) in pairs {
            #expect(try await world.claim(.message(uid, id, "c{}", sent: base)).state == .resume, "\(uid) \(id)")
        }
        await world.end()
    }

    @Test func theLedgerOfAUserIsBounded() async throws {
        let world = try StateWorld()
        try await world.connect()
        let ledger = "c:l:{\(StateWorld.app):u}"
        var largest: Int64 = 0
        for index in 0..<2500 as Range<Int64> {
            let conversation = "conversation-\(index % 40)"
            _ = try await world.claim(
                .message("u", "message-\(index)-0123456789", conversation, sent: base + index, seq: index))
            if index % 100 == 0 { largest = max(largest, try await world.raw("ZCARD", ledger) ?? 0) }
        }
        #expect(largest <= 1000 && largest > 900)
        #expect(try await world.badge("u") <= 1000)
        let full = try await world.raw("MEMORY", "USAGE", ledger) ?? .max
        // All is read; what went stays for a day, for late reports, and is bounded as well.
        for index in 0..<40 {
            try await world.change(
                "u", .read(conversation: "conversation-\(index)", upTo: .init(seq: 2500)), at: 3000)
        }
        #expect(try await world.badge("u") == 0)
        let gone = try await world.raw("ZCARD", "c:x:{\(StateWorld.app):u}") ?? .max
        #expect(gone <= 1000)
        let state = try await world.raw("MEMORY", "USAGE", "c:s:{\(StateWorld.app):u}") ?? .max
        #expect(full < 250_000 && state < 20_000, "ledger \(full) bytes, state \(state) bytes")
        print(
            "memory of a user with 1000 unread: ledger \(full) bytes; state with 40 read conversations \(state) bytes")
        await world.end()
    }

    @Test func readMarksOfAUserAreBounded() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<2100 as Range<Int64> {
            try await world.change("u", .read(conversation: "c\(index)", upTo: .init(seq: 1)), at: index)
        }
        #expect(try await world.raw("HLEN", "c:s:{\(StateWorld.app):u}") ?? .max <= 2048)
        // The older half is where some went.
        let newer = (1050..<2100).map { "rc\($0)" }
        let kept = try await world.ask(
            {
                try $0.client.command($1) { command in
                    command.arg("HMGET")
                    command.arg("c:s:{\(StateWorld.app):u}")
                    for field in newer { command.arg(field) }
                }
            },
            { reply in
                var kept = 0
                reply.forEach { if !$0.isNull { kept += 1 } }
                return kept
            })
        #expect(kept == newer.count)
        await world.end()
    }

    @Test func mutesOfAUserAreBoundedAndThoseInForceGoLast() async throws {
        let world = try StateWorld()
        try await world.connect()
        for index in 0..<2050 as Range<Int64> {
            let level: MuteLevel = index % 4 == 0 ? .blocked : .unset
            try await world.change("u", .mute(conversation: "c\(index)", level: level, untilMs: nil), at: index)
        }
        #expect(try await world.raw("HLEN", "c:s:{\(StateWorld.app):u}") ?? .max <= 2048)
        // 513 in force, none of which had to go for the 1537 that say nothing.
        for index in [0, 4, 1024, 2048] {
            #expect(try await world.recipient("u", conversation: "c\(index)").recipient.mute?.level == .blocked)
        }
        await world.end()
    }

    /// The commands that the script runs are its cost on any machine; what they took on this one is printed beside them.
    @Test func aClaimCostsTheServerNoMoreThanItsFewCommands() async throws {
        let world = try StateWorld()
        try await world.connect()
        _ = try await world.claim(.message("warm", "m", "c", sent: base))
        try await world.raw("CONFIG", "RESETSTAT")
        let claims = 3000
        for index in 0..<Int64(claims) {
            _ = try await world.claim(
                .message(
                    "user-\(index % 300)", "message-\(index)", "conversation-\(index % 7)", sent: base + index,
                    seq: index))
        }
        let stats = try await world.text("INFO", "commandstats")
        var calls: [String: Int] = [:]
        for line in stats.split(separator: "\r\n") where line.hasPrefix("cmdstat_") {
            let name = String(line.prefix { $0 != ":" }.dropFirst("cmdstat_".count))
            calls[name] = figure("calls", in: line).map { Int($0) }
            if name == "evalsha", let usec = figure("usec_per_call", in: line) {
                print("claim, fresh and counted: \(usec) µs in redis-server")
            }
        }
        calls["config|resetstat"] = nil
        #expect(calls.removeValue(forKey: "evalsha") == claims)
        // The mark of a message once handled, the user's state, the unread ledger and its size; a user's first claim adds two.
        #expect(calls.values.reduce(0, +) <= 5 * claims, "\(calls)")
        await world.end()
    }

    private func figure(_ name: String, in line: Substring) -> Double? {
        line.split(whereSeparator: { $0 == "," || $0 == ":" }).first { $0.hasPrefix(name + "=") }
            .flatMap { Double($0.dropFirst(name.count + 1)) }
    }
}

extension StateWorld {
    fileprivate static let token = String(repeating: "ab", count: 32)

    /// Binds the same token.
    fileprivate func bind(_ uid: String, _ device: String, version: Int64) async throws {
        let token = TokenRecord(
            hex: Self.token, environment: .production, topic: "com.example.im", type: .alert, boundMs: Self.base)
        try await change(uid, .bind(.init(device: device, token: token, version: version)))
    }
}
