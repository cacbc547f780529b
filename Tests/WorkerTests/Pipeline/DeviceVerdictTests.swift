// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore
import Redis
import Testing

@testable import Worker

/// One verdict per device, or one verdict without device, never both (contract section 3), in each round and after a crash.
struct DeviceVerdictTests {
    // MARK: - Between two rounds

    @Test func aReadBetweenTwoRoundsEndsTheSilentDeviceAlone() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone", "pad")
            user.connect("phone")
            user.decide()
            user.missAck("phone")
            user.isRead = true
            user.decide()
            user.accept("pad")
        }
        #expect(outcomes == ["pad accepted ok", "phone suppressed already_read"])
    }

    @Test func aMuteBetweenTwoRoundsEndsTheOnlyDeviceByName() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone")
            user.connect("phone")
            user.decide()
            user.missAck("phone")
            user.isMuted = true
            user.decide()
        }
        #expect(outcomes == ["phone suppressed conv_muted"])
    }

    @Test func aLateAckCountsAlsoWhereTheMessageWasRead() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone", "pad")
            user.connect("phone")
            user.decide()
            user.missAck("phone")
            user.isRead = true
            user.decide(acknowledged: ["phone"])
        }
        #expect(outcomes == ["phone online acked"])
    }

    /// A later version's try ended the pad in a way that this one does not know.
    @Test func `a device that a later version closed gets neither a push nor a record`() throws {
        for isMuted in [false, true] {
            let outcomes = try Played.outcomes { user in
                user.bind("phone", "pad")
                user.isMuted = isMuted
                user.decide(resuming: EarlierNotes(closed: ["pad"]))
                #expect(user.routes == (isMuted ? [] : ["phone"]))
            }
            #expect(outcomes == (isMuted ? ["phone suppressed conv_muted"] : []))
        }
    }

    @Test func theOnlySilentConnectionWithoutTokenHasARecordWithoutDevice() throws {
        let outcomes = try Played.outcomes { user in
            user.connect("web")
            user.decide()
            user.missAck("web")
            user.decide()
        }
        #expect(outcomes == ["- suppressed no_token"])
    }

    @Test func silentConnectionsOfAUserWithSeveralDevicesAreNamed() throws {
        let outcomes = try Played.outcomes { user in
            user.connect("pc")
            user.connect("web")
            user.decide()
            user.missAck("pc")
            user.missAck("web")
            user.decide()
        }
        #expect(outcomes == ["pc suppressed no_token", "web suppressed no_token"])
    }

    // MARK: - After a crash

    @Test func aReadAfterACrashEndsTheDeviceThatWasNotPushed() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone", "pad")
            user.isRead = true
            user.decide(resuming: EarlierNotes(accepted: [EarlierPush("pad")]))
        }
        #expect(outcomes == ["pad accepted ok", "phone suppressed already_read"])
    }

    @Test func aSilentConnectionIsNamedAfterAnAcceptedPushOfAnEarlierTry() throws {
        let outcomes = try Played.outcomes { user in
            user.connect("web")
            user.decide(resuming: EarlierNotes(accepted: [EarlierPush("phone")]))
            user.missAck("web")
            user.decide()
        }
        #expect(outcomes == ["phone accepted ok", "web suppressed no_token"])
    }

    @Test func anAckOfAnEarlierTryCountsOnARouteWithoutAlert() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone", "pad")
            user.connect("phone")
            user.isRead = true
            user.decide(resuming: EarlierNotes(accepted: [EarlierPush("pad")]), acknowledged: ["phone"])
        }
        #expect(outcomes == ["pad accepted ok", "phone online acked"])
    }

    @Test func anExpiryAfterACrashEndsEachDevice() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone", "pad", "watch")
            user.isExpired = true
            user.decide(resuming: EarlierNotes(accepted: [EarlierPush("pad")]), acknowledged: ["watch"])
        }
        #expect(outcomes == ["pad accepted ok", "phone expired expired", "watch online acked"])
    }

    @Test func aForcedPushIsRepeatedAsForcedAlsoOnceItsMessageExpired() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("pad")
            user.isExpired = true
            user.decide(resuming: EarlierNotes(accepted: [EarlierPush("pad", isForced: true)]))
        }
        #expect(outcomes == ["pad accepted forced"])
    }

    @Test func aConnectionWithoutTokenIsKnownFromTheMark() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone")
            user.isMuted = true
            user.decide(resuming: EarlierNotes(addressed: ["web"]))
        }
        #expect(outcomes == ["phone suppressed conv_muted", "web suppressed conv_muted"])
    }

    @Test func aDenyAfterATryThatMayHaveRecordedDevicesNamesThem() throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone", "pad")
            user.isRead = true
            user.decide(resuming: .init())
        }
        #expect(outcomes == ["pad suppressed already_read", "phone suppressed already_read"])
    }

    @Test func aDeviceThatLostItsTokenAfterACrashIsNamed() throws {
        let outcomes = try Played.outcomes { user in
            user.decide(resuming: EarlierNotes(addressed: ["phone"]))
        }
        #expect(outcomes == ["phone suppressed no_token"])
    }

    @Test func aUserWithoutAnyDeviceHasOneRecordAfterACrashToo() throws {
        let outcomes = try Played.outcomes { user in
            user.decide(resuming: .init())
        }
        #expect(outcomes == ["- suppressed no_token"])
    }

    @Test(arguments: [Reason.noToken, .dnd])
    func aTryThatRecordedNoDeviceIsRepeatedWhateverTheUserHasByNow(reason: Reason) throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone")
            user.connect("pad")
            user.decide(resuming: .init(), withoutDevice: reason)
        }
        #expect(outcomes == ["- suppressed \(reason.rawValue)"])
    }
}

/// While Redis takes no writes no mark can say which pushes were accepted: a recipient that waits goes to `carillon.parked`.
struct UnclaimedTests {
    @Test func aRecipientThatOwesItsClaimIsParkedOnceItOnlyWaitsForAcks() throws {
        let outcomes = try Played.outcomes(parked: true) { user in
            user.bind("phone", "pad")
            user.connect("phone")
            user.decide(owesClaim: true)
            #expect(!user.isInTopic, "the push to the pad is out")
            user.accept("pad")
            #expect(user.isInTopic)
        }
        #expect(outcomes == ["pad accepted ok", "phone parked unclaimed"])
    }

    @Test(arguments: [(true, "pc suppressed no_token"), (false, "pc suppressed token_moved")])
    func aSilentConnectionWithoutTokenThatComesBackHasNoToken(isSilent: Bool, outcome: String) throws {
        let outcomes = try Played.outcomes { user in
            user.bind("phone")
            user.comeBack("pc", isSilent: isSilent)
            user.decide()
            user.accept("phone")
        }
        #expect(outcomes == [outcome, "phone accepted ok"].sorted())
    }

    @Test func aRecipientWithAClaimWaitsInMemory() throws {
        let outcomes = try Played.outcomes(parked: true) { user in
            user.bind("phone", "pad")
            user.connect("phone")
            user.decide()
            user.accept("pad")
            #expect(!user.isInTopic)
        }
        #expect(outcomes == ["pad accepted ok"])
    }

    @Test func aRefusedNoteInTheMarkParksTheRecipient() throws {
        let outcomes = try Played.outcomes(parked: true) { user in
            user.bind("phone", "pad")
            user.connect("phone")
            user.decide()
            user.accept("pad")
            user.refuseNote()
            #expect(user.isInTopic)
        }
        #expect(outcomes == ["pad accepted ok", "phone parked unclaimed"])
    }

    @Test func `a refused claim of a counted message stays counted in later rounds of a recipient that cannot leave`()
        throws
    {
        try Played.outcomes { user in
            user.cannotLeave()
            user.connect("phone")
            user.connect("pad")
            user.decide(owesClaim: true)
            user.missAck("phone")
            user.isMuted = true
            user.decide(owesClaim: true)
            #expect(user.isCounted)
            user.missAck("pad")
            user.decide()
            #expect(user.isCounted, "this claim pays")
            user.decide()
            #expect(!user.isCounted, "it is paid")
        }
    }

    /// A repeat of it may be decided in another shard at the same time. The mark tells that one how it is recorded.
    @Test(arguments: [nil, ("", true), ("phone", false)] as [(String, Bool)?])
    func theClaimOfARecipientThatWasParkedWholeSaysThatItIsRecordedWithoutADevice(
        _ parked: (device: String, saysSo: Bool)?
    ) throws {
        try ScriptedShard.withPipeline { world, pipeline in
            let job = try world.recipient()
            if let parked {
                var record = ParkedRecord(
                    app: "im", uid: "u", raw: [], cause: .share, dueMs: 0, writtenMs: 0, id: "mm")
                if !parked.device.isEmpty { record.devices = [parked.device] }
                job.goOn(from: record, steadyMs: 0)
            }
            job.candidate?.recipient.mute = .init(level: .blocked)
            if let candidate = job.candidate { _ = pipeline.decider.decide(job, candidate) }
            #expect((job.withoutDevice?.reason == .convMuted) == parked?.saysSo ?? true)
        }
    }

    @Test func aParkedRecipientReturnsWithTheCountThatItOwes() throws {
        let counts = try ScriptedShard.withPipeline { world, pipeline in
            try [false, true].map { counts in
                var record = ParkedRecord(
                    app: "im", uid: "u", raw: [], cause: .unclaimed, dueMs: 0, writtenMs: 0, id: "mm")
                record.facts = ParkedFacts(of: [], .owed(counts: counts))
                let job = try world.recipient()
                job.goOn(from: record, steadyMs: 0)
                let candidate = Candidate(uid: "u", order: 0)
                candidate.recipient.mute = .init(level: .blocked)
                _ = pipeline.decider.decide(job, candidate)
                return job.isCounted
            }
        }
        #expect(counts == [false, true])
    }

    /// Also one that waited here for the first before that was parked. After a wait for a desktop another shard may be
    /// pushing.
    @Test(arguments: [false, true])
    func aRepeatOfARecipientInTheTopicOfAnotherShardWaitsBehindIt(isTwin: Bool) throws {
        let waits = try ScriptedShard.withPipeline { world, pipeline in
            try Self.waits(pipeline.shard.nowMs).enumerated().map { row, wait in
                let job = try world.recipient(of: try world.message("m\(row)"))
                if isTwin {
                    pipeline.dispatcher.waitForTwin(job)
                    pipeline.dispatcher.ends.twinEnded(job.ref)
                }
                job.firstClaim = .resumed
                let candidate = Candidate(uid: "u", order: 0)
                candidate.claim = ClaimReply(state: .resume, badge: 1)
                candidate.claim?.notes = EarlierNotes(wait: wait)
                return pipeline.dispatcher.waits.parkBesideEarlierTry(job, candidate) == .kept
            }
        }
        #expect(waits == [false, true, false, true, true])
    }

    private static func waits(_ nowMs: Int64) -> [EarlierWait?] {
        let ends = [nowMs + 7_000, nowMs - 1]
        return [nil] + ends.map { EarlierWait(untilMs: $0) }
            + ends.map { EarlierWait(untilMs: $0, cause: .desktopFirst) }
    }

    /// Another shard may read its record: both would push.
    @Test func aTwinFollowsARecipientIntoTheTopic() throws {
        let areInTopic = try ScriptedShard.withPipeline { world, pipeline in
            let jobs = [try world.recipient(), try world.recipient()]
            let candidate = Candidate(uid: "u", order: 0)
            candidate.claim = ClaimReply(state: .resume, badge: 1)
            candidate.claim?.notes = EarlierNotes(wait: EarlierWait(untilMs: pipeline.shard.nowMs + 1_000))
            jobs[0].firstClaim = .resumed
            let passages = jobs.map { pipeline.claims.takeKey($0) }
            pipeline.dispatcher.waitForTwin(jobs[1])
            let isParked = pipeline.dispatcher.waits.parkBesideEarlierTry(jobs[0], candidate)
            return passages == [.goesOn, .kept] && isParked == .kept
                ? jobs.map { $0.machine.leaving != nil } : []
        }
        #expect(areInTopic == [true, true])
    }

    /// Later pushes of the devices do not wait for a desktop's message or for a background push, so they do not for its repeat.
    @Test(arguments: [.desktopFirst, .background, nil] as [ParkCause?])
    func aRepeatWaitsLikeItsFirst(cause: ParkCause?) throws {
        let parked = try ScriptedShard.withPipeline { world, pipeline in
            let job = try world.recipient()
            job.firstClaim = .resumed
            let candidate = Candidate(uid: "u", order: 0)
            candidate.claim = ClaimReply(state: .resume, badge: 1)
            let untilMs = pipeline.shard.nowMs + 7_000
            candidate.claim?.notes = EarlierNotes(wait: EarlierWait(untilMs: untilMs, cause: cause))
            _ = pipeline.dispatcher.waits.parkBesideEarlierTry(job, candidate)
            return job.leftWith
        }
        #expect(parked?.cause == cause ?? .behind)
    }

    /// The ledger's entry contains the message's time, so the entry is a claim only where each reader finds the same time.
    @Test func aMessageWithoutATimeOfItsOwnIsClaimedByTheScript() throws {
        let plain = try ScriptedShard.withPipeline { world, pipeline in
            let now = pipeline.shard.nowMs
            return try [now - 1, now + 30_000, now + 120_000, 0].map { kafkaMs in
                let job = try world.recipient(of: try world.message(origin: .alone(kafkaMs: kafkaMs)))
                job.isCounted = true
                let candidate = Candidate(uid: "u", order: 0)
                candidate.plainPast = 0
                candidate.decision = Decision(
                    alert: .allow(forced: false), counted: true,
                    routes: [Route(device: "d", way: .apns(token: 0, copyTo: nil))])
                return pipeline.claims.claimsPlainly(job, candidate)
            }
        }
        #expect(plain == [true, true, false, false])
    }

    @Test func aCountedMessageWithoutADeviceIsClaimedByTheScript() throws {
        let plain = try ScriptedShard.withPipeline { world, pipeline in
            try [true, false].map { isCounted in
                let job = try world.recipient()
                job.isCounted = isCounted
                let candidate = Candidate(uid: "u", order: 0)
                candidate.plainPast = 0
                candidate.decision = Decision(alert: .deny(.dnd), counted: isCounted, routes: [])
                return pipeline.claims.claimsPlainly(job, candidate)
            }
        }
        #expect(plain == [false, true])
    }

    /// A message may be repeated until it expires.
    @Test func aMarkLivesUntilItsMessageExpires() {
        let days: Int64 = 60 * 86_400
        #expect(StateKeys.markSeconds(expireAtMs: days * 1000, nowMs: 0) >= days)
        #expect(StateKeys.markSeconds(expireAtMs: .max, nowMs: 0) < 100 * 86_400)
    }

    @Test func aRepeatOfARecipientInTheTopicPushesNothing() throws {
        let states = try ScriptedShard.withPipeline { world, pipeline in
            let request = ClaimRequest(
                app: "im", uid: "u", ClaimSubject(kind: .message, id: "m", sentMs: 0, expireAtMs: .max), counted: true,
                nowMs: 0)
            let job = try world.recipient()
            let candidate = Candidate(uid: "u", order: 0)
            candidate.claim = ClaimReply(state: .fresh, badge: 1)
            pipeline.claims.applyRemembered(job, candidate)
            var states = [candidate.claim?.state]
            pipeline.claims.rememberUnmarked(OwedClaim(request, eventID: "e"))
            pipeline.claims.applyRemembered(job, candidate)
            states.append(candidate.claim?.state)
            return states
        }
        #expect(states == [.fresh, .ended])
    }
}

/// One recipient whose rounds are played by hand, and the outcomes that they record.
private final class Played {
    private let pipeline: Pipeline
    private let job: RecipientJob
    /// The devices with a route that is open.
    var routes: [String] { job.devices.filter(\.isOpen).map(\.route.device) }
    private var tokens: [BoundToken] = []
    private var presence: [DevicePresence] = []
    var isRead = false
    var isMuted = false
    var isExpired = false

    private init(_ pipeline: Pipeline, _ world: ScriptedShard) throws {
        self.pipeline = pipeline
        job = try world.recipient()
        job.event.audience = Audience(uids: [])
    }

    /// The recipient's record is too large for the topic.
    func cannotLeave() { job.flags.insert(.staysInMemory) }

    /// The outcomes recorded while the rounds are played, as `device verdict reason`, sorted.
    @discardableResult
    static func outcomes(parked isParked: Bool = false, _ play: (Played) -> Void) throws -> [String] {
        try ScriptedShard.withPipeline { world, pipeline in
            let played = try Played(pipeline, world)
            play(played)
            return played.job.journal.entries.filter {
                $0.traits.contains(.isTraced) && (!$0.isWait || (isParked && $0.reason != "no_ack"))
            }
            .map { "\($0.device ?? "-") \($0.verdict.rawValue) \($0.reason)" }.sorted()
        }
    }

    func bind(_ devices: String...) {
        for device in devices { tokens.append(ScriptedShard.token(device, tokens.count)) }
    }

    func connect(_ device: String) {
        presence.append(
            DevicePresence(
                device: device, state: .foreground, platform: .ios, gateway: "gw", gatewayEpoch: 1, connectionEpoch: 1,
                lastMs: 0))
    }

    /// The ack of the device's delivery is missing at its time.
    func missAck(_ device: String) {
        job.silentConnections.append(.init(device: device, epoch: 1))
        for index in job.devices.indices where job.devices[index].route.device == device {
            pipeline.dispatcher.devices.replace(job, index)
        }
        presence.removeAll { $0.device == device }
    }

    /// Its record of `carillon.parked` is read, with this device.
    func comeBack(_ device: String, isSilent: Bool) {
        var record = ParkedRecord(app: "im", uid: "u", raw: [], cause: .unclaimed, dueMs: 0, writtenMs: 0, id: "mm")
        record.devices = [device]
        if isSilent { record.silentConnections = [.init(device: device, epoch: 1)] }
        job.goOn(from: record, steadyMs: 0)
    }

    /// All that is open of it is in a record of `carillon.parked`.
    var isInTopic: Bool { !job.machine.isMarked && job.machine.openDevices == 0 }

    var isCounted: Bool { job.isCounted }

    /// Redis refused to note an accepted push in the mark.
    func refuseNote() { pipeline.dispatcher.waits.didFailNote(job.ref, RedisFault(.outOfMemory)) }

    /// APNs accepted the device's push.
    func accept(_ device: String) {
        for index in job.devices.indices where job.devices[index].route.device == device {
            pipeline.dispatcher.devices.end(job, index, .accepted, Reason.ok.rawValue)
        }
        pipeline.dispatcher.ends.endIfComplete(job)
    }

    /// A round of the decision with what is true now.
    ///
    /// - Parameters:
    ///   - resuming: what the mark of an earlier try says; nil: there was none.
    ///   - withoutDevice: the earlier try decided to record it without a device.
    ///   - acknowledged: devices that acknowledged a delivery by now.
    func decide(
        resuming earlier: EarlierNotes? = nil, withoutDevice: Reason? = nil, acknowledged: [String] = [],
        owesClaim: Bool = false
    ) {
        guard job.machine.decideAgain(Candidate(uid: "u", order: 0)), let candidate = job.candidate else { return }
        candidate.recipient.tokens = tokens
        candidate.recipient.presence = presence
        if isMuted { candidate.recipient.mute = .init(level: .blocked) }
        if isRead { candidate.recipient.read = .init(ms: .max) }
        candidate.acknowledged = acknowledged
        guard pipeline.decider.decide(job, candidate) else { return }
        if isExpired { candidate.decision = Decision(alert: .deny(.expired), counted: false, routes: []) }
        var claim = ClaimReply(state: earlier == nil ? .fresh : .resume, badge: 1)
        claim.notes = EarlierNotes(
            accepted: earlier?.accepted ?? [], addressed: earlier?.addressed ?? [], closed: earlier?.closed ?? [],
            withoutDevice: withoutDevice)
        if earlier != nil { job.firstClaim = .resumed }
        candidate.claim = claim
        candidate.refusal = owesClaim ? .forNow : nil
        pipeline.dispatcher.route(job)
    }
}
