// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis

/// The 64 bits that accompany a Redis command, a push or a Kafka record and return with its answer.
///
/// A tag has a slot and the slot's generation, so a late answer finds a slot with another generation and is ignored.
/// `stage` and `index` identify the query.
struct Tag: Equatable {
    /// The query; each interprets `index` differently.
    enum Stage: UInt8 {
        // Lookup: a recipient's facts; the marks of several in one call.
        case presence, user, conversation, group, activity, mark, marks, groupMarks, lease
        // FanOut: a page of a group's members; the collapse id of a revoke's original, and whether its members have marks in a
        // common key; the owner of one of `to.tokens`.
        case members, original, originalMarks, groupSize, tokenOwner
        // Claims: one recipient's claim, the owners of its tokens, and the acks of silent connections; the first two for several
        // recipients in one call.
        case claim, owner, claimAcks, claims, owners
        // The same by plain commands: the ledger's entry, its size, and the second read.
        case claimAdd, claimCount, claimLook
        // Dispatcher: the devices that acknowledged a delivery.
        case acks
        // Sender: the check before sending of a push that had to wait.
        case checkClaim, checkOwner, checkAcks, checkActivity
        // Recorder: the mark and its preceding writes; the owner entry of a dead token.
        case writeMark, heldBack, writeMarks, retireToken
        /// A command with an answer that changes nothing.
        case note
        // UserStates.
        case change
        // Bursts: the repeated claim at the end of a burst's window.
        case burst
        // Digests.
        case due, digest
        // BadgeUpdates: the devices, then per device the number and the token's owner.
        case updateUser, updateDevices, updateBase, updateSize, updateOwner
        /// NewestBadges: the badge after a push was accepted while other workers may push the same device.
        case newestBase, newestSize
        // Pushes at APNs.
        case push, updatePush
        // Records at the broker; `parkedEvent` for parked work.
        case record, delivery, deadLetter, owedClaim, updateRecord, stateResult, parkedEvent, feedback,
            chunk
        // FanOut: whether an earlier event of the conversation is parked; whether an earlier try read the recipients.
        case parkedBefore, tries
        // Pipeline: how many keys Redis has, and when an operator said that its loss is accepted, and the time.
        case keyCount, lossAccepted, time
        // Pipeline: a server's heartbeat, its count alone, and the end of a replay; the slot is the server's number.
        case beat, beatLook, endReplay
        // Statistics: the positions of new partitions, and a flush.
        case beginCounting, count
    }

    var ref: WorkRef
    var stage: Stage
    /// A device, token or step of the slot, ≤ 255.
    var index: UInt8

    init(_ ref: WorkRef, _ stage: Stage, index: Int = 0) {
        self.ref = ref
        self.stage = stage
        self.index = UInt8(truncatingIfNeeded: index)
    }

    /// - Returns: nil for bits that no tag has.
    init?(_ bits: UInt64) {
        guard let stage = Stage(rawValue: UInt8(truncatingIfNeeded: bits >> 8)) else { return nil }
        ref = WorkRef(slot: Int(bits >> 40), generation: UInt32(truncatingIfNeeded: bits >> 16) & 0xFF_FFFF)
        self.stage = stage
        index = UInt8(truncatingIfNeeded: bits)
    }

    var bits: UInt64 {
        UInt64(ref.slot) << 40 | UInt64(ref.generation & 0xFF_FFFF) << 16 | UInt64(stage.rawValue) << 8 | UInt64(index)
    }

    /// For commands without a slot and with answers that change nothing.
    static var noteBits: UInt64 { Tag(.none, .note).bits }
}

extension Tag.Stage {
    /// The component that asks Redis, and that gets the answer.
    enum Asker {
        case lookup, fanOut, claims, dispatcher, sender, recorder
        case userStates, bursts, digests, badgeUpdates, newestBadges
        /// The guards and the statistics.
        case aside
        /// No answer changes anything, or none comes from Redis.
        case nobody
    }

    var asker: Asker {
        switch self {
        case .presence, .user, .conversation, .group, .activity, .mark, .marks, .groupMarks, .lease: .lookup
        case .members, .original, .originalMarks, .groupSize, .tokenOwner, .parkedBefore, .tries: .fanOut
        case .claim, .owner, .claimAcks, .claims, .owners, .claimAdd, .claimCount, .claimLook: .claims
        case .acks, .note: .dispatcher
        case .checkClaim, .checkOwner, .checkAcks, .checkActivity: .sender
        case .writeMark, .heldBack, .writeMarks, .retireToken: .recorder
        case .change: .userStates
        case .burst: .bursts
        case .due, .digest: .digests
        case .updateUser, .updateDevices, .updateBase, .updateSize, .updateOwner: .badgeUpdates
        case .newestBase, .newestSize: .newestBadges
        case .keyCount, .lossAccepted, .time, .beat, .beatLook, .endReplay, .beginCounting, .count: .aside
        case .push, .updatePush, .record, .delivery, .deadLetter, .owedClaim, .updateRecord, .stateResult,
            .parkedEvent, .feedback, .chunk:
            .nobody
        }
    }

    /// The stage to which its answer belongs.
    var part: StageClock.Stage {
        switch self {
        case .presence, .user, .conversation, .group, .activity, .mark, .marks, .groupMarks, .lease: .lookup
        case .members, .original, .originalMarks, .groupSize, .tokenOwner, .parkedBefore, .tries: .read
        case .claim, .owner, .claimAcks, .claims, .owners, .claimAdd, .claimCount, .claimLook, .acks: .claim
        case .checkClaim, .checkOwner, .checkAcks, .checkActivity, .push: .send
        case .writeMark, .heldBack, .writeMarks, .retireToken, .record, .delivery: .record
        case .note, .change, .burst, .due, .digest, .updateUser, .updateDevices, .updateBase, .updateSize, .updateOwner,
            .newestBase, .newestSize, .updatePush, .deadLetter, .owedClaim, .updateRecord, .stateResult,
            .parkedEvent, .feedback, .chunk, .keyCount, .lossAccepted, .time, .beat, .beatLook, .endReplay,
            .beginCounting, .count:
            .other
        }
    }
}

extension Tag.Stage {
    /// Its answer describes users or earlier work for them. Older data gives another answer (`DataAge`).
    var isOfUsers: Bool {
        switch self {
        case .presence, .user, .conversation, .group, .activity, .mark, .marks, .groupMarks, .original, .originalMarks,
            .tokenOwner, .parkedBefore, .tries,
            .claim, .owner, .claimAcks, .claims, .owners, .claimAdd, .claimCount, .claimLook, .acks, .checkClaim,
            .checkOwner, .checkAcks, .checkActivity, .burst, .updateUser, .updateDevices, .updateBase, .updateSize,
            .updateOwner,
            .newestBase,
            .newestSize:
            true
        case .lease, .members, .groupSize, .writeMark, .heldBack, .writeMarks, .retireToken, .note, .change, .due,
            .digest, .push,
            .updatePush, .record, .delivery, .deadLetter, .owedClaim, .updateRecord, .stateResult, .parkedEvent,
            .feedback, .chunk, .keyCount, .lossAccepted, .time, .beat, .beatLook, .endReplay, .beginCounting, .count:
            false
        }
    }
}

extension Tag.Stage {
    /// Whether a reply of this kind can be the stage's answer. Another one is that of another command: taken for the answer, an
    /// integer would be a user without tokens.
    func fits(_ kind: RedisReply.Kind) -> Bool {
        switch self {
        case .presence, .user, .conversation, .marks, .groupMarks, .members, .claim, .claims, .claimLook, .owners,
            .checkClaim, .burst, .due, .digest, .updateUser, .updateDevices, .time, .beat,
            .beginCounting, .count:
            kind == .array
        case .group, .activity, .mark, .lease, .original, .parkedBefore, .tries, .tokenOwner, .owner, .claimAcks, .acks,
            .checkOwner, .checkAcks, .checkActivity, .updateBase, .updateOwner, .newestBase, .lossAccepted, .beatLook:
            kind == .string || kind == .null
        case .originalMarks, .groupSize, .updateSize, .newestSize, .heldBack, .writeMarks, .retireToken:
            kind == .integer
        // A plain claim asks for different facts of counted and other messages.
        case .claimAdd, .claimCount: kind != .array && kind != .status
        case .keyCount: kind == .integer || kind == .array
        case .writeMark: kind == .status
        case .change, .note, .endReplay, .push, .updatePush, .record, .delivery, .deadLetter, .owedClaim, .updateRecord,
            .stateResult, .parkedEvent, .feedback, .chunk:
            true
        }
    }
}
