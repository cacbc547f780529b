// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// A claim by plain commands, and its answers so far: the usual message at a third of the script's cost in Redis.
///
/// The ledger's entry is the claim: adding it is atomic, shows whether it existed, and may be repeated. So no mark is
/// written before the mark. A recipient without a mark, without a client's total that includes the message and
/// without a read mark that covers it adds the entry (`StateStore.addToLedger`). Then the same facts are read again
/// after it on the same connection. If all are unchanged, the claim is valid as if it were one step, because bases,
/// read marks and versions never decrease. If a fact changed, or the entry existed, or the ledger is full, these
/// answers decide nothing: the script settles it (`ClaimScripts.claim`) and corrects a wrong addition.
struct PlainClaim {
    /// Size above which a ledger is cut, which the script does.
    static let sizeMax: Int64 = 1000

    /// A counted message is added to the ledger.
    let isCounted: Bool
    /// It has no push, so it needs no badge: in place of the ledger's size it asks whether an earlier try counted it.
    let looksForEntry: Bool
    /// This claim added the entry.
    private(set) var isAdded = false
    /// Entries that the client's total included at the time of the read.
    private let past: Int16
    private var size: Int64 = 0
    /// The version at the time of the read.
    private let tokenVersion: Int64
    private var base = BadgeReading()
    /// The ledger's age from the user's state; nil for none.
    private var epoch: Int64?
    /// A fact prevents the plain claim.
    private var isSpecial = false
    /// Another worker finished an uncounted message since its mark was read.
    private var isEnded = false

    init(isCounted: Bool, tokenVersion: Int64, past: Int16 = 0, looksForEntry: Bool = false) {
        self.isCounted = isCounted
        self.looksForEntry = looksForEntry
        self.tokenVersion = tokenVersion
        self.past = past
    }

    /// Number of answers.
    static let commandCount = 3

    // MARK: Answers

    mutating func didAdd(_ reply: borrowing RedisReply) { isAdded = reply.int64 == 1 }

    /// An uncounted message has no entry that shows another worker's claim; its mark does.
    mutating func didReadMark(_ reply: borrowing RedisReply) {
        guard !reply.isNull else { return }
        if PairMark.state(reply) == .ended { isEnded = true } else { isSpecial = true }
    }

    mutating func didCount(_ reply: borrowing RedisReply) {
        if looksForEntry {
            if !reply.isNull { isSpecial = true }
            return
        }
        guard let count = reply.int64 else { return isSpecial = true }
        size = count
    }

    /// Version, base, read mark, age, and the last revokes, read after the entry.
    mutating func didLook(_ reply: borrowing RedisReply, at subject: ClaimSubject) {
        guard reply.count == 5 else { return isSpecial = true }
        if reply[0].int64 ?? 0 != tokenVersion { isSpecial = true }
        if !reply[1].isNull { base = BadgeReading(base: reply[1]) }
        // An old entry that came between size and base would be in one of them only.
        if base.holds(subject) || Int16(clamping: base.past) != past { isSpecial = true }
        if !reply[2].isNull, RecipientReplies.readMark(reply[2].bytes)?.covers(subject) ?? false { isSpecial = true }
        epoch = reply[3].int64
        if !reply[4].isNull, Self.holds(reply[4].bytes, StateKeys.digest(subject.id)) { isSpecial = true }
    }

    /// - Returns: whether a digest is among these, eight bytes each.
    private static func holds(_ digests: UnsafeRawBufferPointer, _ digest: UInt64) -> Bool {
        stride(from: 0, through: digests.count - 8, by: 8).contains { place in
            digests.loadUnaligned(fromByteOffset: place, as: UInt64.self) == digest
        }
    }

    /// One command was refused. The script decides.
    mutating func didFail() { isSpecial = true }

    // MARK: Replies

    /// The claim's result; nil if the script must settle it.
    var reply: ClaimReply? {
        if isEnded { return ClaimReply(state: .ended, badge: nil, tokenVersion: tokenVersion) }
        guard !isSpecial, isAdded == isCounted, size >= (isCounted ? 1 : 0), size <= Self.sizeMax else { return nil }
        return ClaimReply(
            state: .fresh, badge: looksForEntry ? nil : base.badge(size: size), tokenVersion: tokenVersion,
            adds: isCounted,
            hasReport: base.hasReport)
    }

    /// The ledger may have expired since the entries before the client's report were counted: the script counts them again.
    func mayBeExpired(nowMs: Int64) -> Bool {
        isCounted && base.hasPast && StateKeys.ledgerEpoch(nowMs: nowMs) - (epoch ?? 0) >= StateKeys.ledgerEpochs
    }

    /// What to renew for a ledger with a new entry: its lifetime, and the age for the next renewal.
    func renewal(nowMs: Int64) -> (life: Bool, epoch: Int64?) {
        guard isCounted else { return (false, nil) }
        let now = StateKeys.ledgerEpoch(nowMs: nowMs)
        return (size == 1 || epoch != now, epoch == now ? nil : now)
    }
}

extension BadgeReading {
    /// The total was reported at the message's time or later.
    func holds(_ subject: ClaimSubject) -> Bool { atMs.map { $0 >= StateKeys.time(subject.sentMs) } ?? false }
}

extension UserState.ReadMark {
    /// Compares like the script.
    func covers(_ subject: ClaimSubject) -> Bool {
        covers(seq: subject.comparableSeq, sentMs: StateKeys.time(subject.sentMs))
    }
}
