// SPDX-License-Identifier: Apache-2.0
/// The router of the broker's answers to the components that wrote the records: a layer above all of them.
final class BrokerAnswers {
    private let shard: ShardContext
    private let work: WorkTable
    private let recorder: Recorder
    private let planner: Planner
    private let badgeUpdates: BadgeUpdates
    private let parking: Parking
    private let userStates: UserStates
    private let recipientEnds: RecipientEnds
    private let eventEnds: EventEnds

    init(
        _ shard: ShardContext, _ work: WorkTable, recorder: Recorder, planner: Planner, badgeUpdates: BadgeUpdates,
        parking: Parking, userStates: UserStates, recipientEnds: RecipientEnds, eventEnds: EventEnds
    ) {
        self.shard = shard
        self.work = work
        self.recorder = recorder
        self.planner = planner
        self.badgeUpdates = badgeUpdates
        self.parking = parking
        self.userStates = userStates
        self.recipientEnds = recipientEnds
        self.eventEnds = eventEnds
    }

    /// The broker has a record (or it was given up with a log line).
    func didSettleRecord(_ bits: UInt64) {
        guard let tag = Tag(bits) else { return shard.mistake("an answer with a tag that no command has") }
        switch tag.question {
        case .record: recorder.didSettleRecord(tag.ref)
        case .delivery:
            guard let event = work.event(tag.ref) else { return shard.mistake("a delivery whose event has ended") }
            for waiting in recorder.didSettleDelivery(event) { recipientEnds.endIfComplete(waiting) }
            eventEnds.release(event)
        case .chunk:
            guard let event = planner.didSettle(tag.ref) else { return shard.noteLate() }
            eventEnds.release(event)
        case .feedback: recorder.didSettleFeedback(tag.ref)
        case .updateRecord: badgeUpdates.didSettleRecord(tag.ref)
        case .owedClaim: recorder.didStoreOwedClaim(tag.ref)
        case .parkedEvent: parking.didSettle(tag.ref)
        case .deadLetter, .stateResult: userStates.didSettle(tag.ref)
        default: return
        }
        shard.requestTurn()
    }

    /// The broker will never accept a record. Work that was to be parked stays in memory.
    ///
    /// - Returns: false for any other record.
    func keepsWork(ofRecord bits: UInt64) -> Bool {
        switch Tag(bits)?.question {
        case .parkedEvent: Tag(bits).map { parking.didGiveUp($0.ref) }
        case .chunk: Tag(bits).map { planner.didGiveUp($0.ref) }
        default: return false
        }
        return true
    }
}
