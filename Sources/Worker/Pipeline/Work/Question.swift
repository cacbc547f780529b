// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Redis

/// The kind of a Redis command, a push or a record: the answer's reader needs it. Each kind gives a tag's index its own meaning.
///
/// A new question is a case, its row here, and the code that asks it and reads its answer.
enum Question: UInt8 {
    // A recipient's facts; the marks of several in one call; a gateway's lease.
    case presence, user, conversation, group, activity, mark, marks, groupMarks, lease
    // A page of a group's members; the collapse id of a revoke's original, and whether its members have marks in a common key;
    // the note with that collapse id (`OriginalNotes`); the owner of one of `to.tokens`; whether an earlier event of the
    // conversation is parked, and whether an earlier try read the recipients.
    case members, original, originalMarks, keptOriginal, groupSize, tokenOwner, parkedBefore, tries
    // One recipient's claim, the owners of its tokens, and the acks of silent connections; the first two for several recipients
    // in one call.
    case claim, owner, claimAcks, claims, owners
    // The claim by plain commands: the ledger's entry, its size, and the second read.
    case claimAdd, claimCount, claimLook
    /// The devices that acknowledged a delivery.
    case acks
    // The check before sending of a push that had to wait.
    case checkClaim, checkOwner, checkAcks, checkActivity
    /// The place of a background push in its device's hour (`limits.background_per_hour`).
    case hour
    // The mark and its preceding writes; the owner entry of a dead token.
    case writeMark, heldBack, writeMarks, retireToken
    /// A command with an answer that changes nothing.
    case note
    /// A change of user state.
    case change
    /// The repeated claim at the end of a burst's window.
    case burst
    case due, digest
    // The devices of a badge update, then per device the number and the token's owner.
    case updateUser, updateDevices, updateBase, updateSize, updateOwner
    // The badge after a push was accepted while other workers may push the same device.
    case newestBase, newestSize
    // How many keys Redis has, when an operator said that its loss is accepted, and the time.
    case keyCount, lossAccepted, time
    // A server's heartbeat, its count alone, and the end of a replay; the slot is the server's number.
    case beat, beatLook, endReplay
    /// The note for the operator's pages of all workers.
    case fleet
    // The positions of new partitions, and a flush of the statistics.
    case beginCounting, count
    /// A push at APNs.
    case push
    // Records at the broker; `parkedEvent` for parked work.
    case record, delivery, deadLetter, owedClaim, updateRecord, stateResult, parkedEvent, feedback, chunk
}

extension Question {
    /// The facts about an answer that the worker needs before the asker reads it.
    struct Row {
        let asker: Asker
        /// The stage of a push to which the answer's time belongs.
        let stage: StageClock.Stage
        let reply: Reply
        /// Whether the answer describes users or earlier work for them. Older data gives another answer (`DataAge`).
        let isOfUsers: Bool
        /// The owner of the key, if a key that can never be read counts as absent; nil if the asker decides, or asks again.
        let absentKey: KeyOwner?

        init(
            _ asker: Asker, _ stage: StageClock.Stage, _ reply: Reply, isOfUsers: Bool = false,
            ifLasting absentKey: KeyOwner? = nil
        ) {
            self.asker = asker
            self.stage = stage
            self.reply = reply
            self.isOfUsers = isOfUsers
            self.absentKey = absentKey
        }
    }

    /// The component that asks Redis, and that gets the answer.
    enum Asker {
        case lookup, fanOut, claims, dispatcher, sender, recorder
        case userStates, bursts, digests, badgeUpdates, newestBadges
        /// The guards and the statistics.
        case aside
        /// No answer changes anything, or none comes from Redis.
        case nobody
    }

    /// The kinds of replies that can be the answer. Another one is that of another command: taken for the answer, an integer
    /// would be a user without tokens.
    enum Reply {
        case array, text, integer, status
        /// One integer, or several.
        case integers
        /// Facts of a counted or of another message: no array and no status.
        case fact
        case any

        func fits(_ kind: RedisReply.Kind) -> Bool {
            switch self {
            case .array: kind == .array
            case .text: kind == .string || kind == .null
            case .integer: kind == .integer
            case .status: kind == .status
            case .integers: kind == .integer || kind == .array
            case .fact: kind != .array && kind != .status
            case .any: true
            }
        }
    }

    enum KeyOwner {
        case worker
        case otherSystem
    }

    var row: Row {
        switch self {
        case .presence: Row(.lookup, .lookup, .array, isOfUsers: true, ifLasting: .otherSystem)
        case .user: Row(.lookup, .lookup, .array, isOfUsers: true, ifLasting: .worker)
        case .conversation: Row(.lookup, .lookup, .array, isOfUsers: true, ifLasting: .worker)
        case .group: Row(.lookup, .lookup, .text, isOfUsers: true, ifLasting: .otherSystem)
        case .activity: Row(.lookup, .lookup, .text, isOfUsers: true, ifLasting: .otherSystem)
        case .mark: Row(.lookup, .lookup, .text, isOfUsers: true, ifLasting: .worker)
        case .marks: Row(.lookup, .lookup, .array, isOfUsers: true)
        case .groupMarks: Row(.lookup, .lookup, .array, isOfUsers: true, ifLasting: .worker)
        case .lease: Row(.lookup, .lookup, .text, ifLasting: .otherSystem)
        case .members: Row(.fanOut, .read, .array)
        case .original: Row(.fanOut, .read, .text, isOfUsers: true, ifLasting: .worker)
        case .originalMarks: Row(.fanOut, .read, .integer, isOfUsers: true, ifLasting: .worker)
        case .keptOriginal: Row(.fanOut, .other, .status)
        case .groupSize: Row(.fanOut, .read, .integer, ifLasting: .otherSystem)
        case .tokenOwner: Row(.fanOut, .read, .text, isOfUsers: true, ifLasting: .worker)
        case .parkedBefore: Row(.fanOut, .read, .text, isOfUsers: true, ifLasting: .worker)
        case .tries: Row(.fanOut, .read, .text, isOfUsers: true, ifLasting: .worker)
        case .claim: Row(.claims, .claim, .array, isOfUsers: true)
        case .owner: Row(.claims, .claim, .text, isOfUsers: true, ifLasting: .worker)
        case .claimAcks: Row(.claims, .claim, .text, isOfUsers: true, ifLasting: .worker)
        case .claims: Row(.claims, .claim, .array, isOfUsers: true)
        case .owners: Row(.claims, .claim, .array, isOfUsers: true)
        case .claimAdd: Row(.claims, .claim, .fact, isOfUsers: true)
        case .claimCount: Row(.claims, .claim, .fact, isOfUsers: true)
        case .claimLook: Row(.claims, .claim, .array, isOfUsers: true)
        case .acks: Row(.dispatcher, .claim, .text, isOfUsers: true, ifLasting: .worker)
        case .checkClaim: Row(.sender, .send, .array, isOfUsers: true)
        case .checkOwner: Row(.sender, .send, .text, isOfUsers: true, ifLasting: .worker)
        case .checkAcks: Row(.sender, .send, .text, isOfUsers: true, ifLasting: .worker)
        case .checkActivity: Row(.sender, .send, .text, isOfUsers: true, ifLasting: .worker)
        case .hour: Row(.sender, .send, .integer, isOfUsers: true, ifLasting: .worker)
        case .writeMark: Row(.recorder, .record, .status)
        case .heldBack: Row(.recorder, .record, .integer)
        case .writeMarks: Row(.recorder, .record, .integer)
        case .retireToken: Row(.recorder, .record, .integer)
        case .note: Row(.dispatcher, .other, .any)
        case .change: Row(.userStates, .other, .any)
        case .burst: Row(.bursts, .other, .array, isOfUsers: true)
        case .due: Row(.digests, .other, .array)
        case .digest: Row(.digests, .other, .array)
        case .updateUser: Row(.badgeUpdates, .other, .array, isOfUsers: true, ifLasting: .worker)
        case .updateDevices: Row(.badgeUpdates, .other, .array, isOfUsers: true, ifLasting: .worker)
        case .updateBase: Row(.badgeUpdates, .other, .text, isOfUsers: true, ifLasting: .worker)
        case .updateSize: Row(.badgeUpdates, .other, .integer, isOfUsers: true, ifLasting: .worker)
        case .updateOwner: Row(.badgeUpdates, .other, .text, isOfUsers: true, ifLasting: .worker)
        case .newestBase: Row(.newestBadges, .other, .text, isOfUsers: true)
        case .newestSize: Row(.newestBadges, .other, .integer, isOfUsers: true)
        case .keyCount: Row(.aside, .other, .integers)
        case .lossAccepted: Row(.aside, .other, .text)
        case .time: Row(.aside, .other, .array)
        case .beat: Row(.aside, .other, .array)
        case .beatLook: Row(.aside, .other, .text)
        case .endReplay: Row(.aside, .other, .any)
        case .fleet: Row(.aside, .other, .array)
        case .beginCounting: Row(.aside, .other, .array)
        case .count: Row(.aside, .other, .array)
        case .push: Row(.nobody, .send, .any)
        case .record, .delivery: Row(.nobody, .record, .any)
        case .deadLetter, .owedClaim, .updateRecord, .stateResult, .parkedEvent, .feedback, .chunk:
            Row(.nobody, .other, .any)
        }
    }
}
