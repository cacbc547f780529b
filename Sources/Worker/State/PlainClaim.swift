import PushCore
import Redis

/// A claim by plain commands, and what they have answered so far: the usual message at a third of what the script costs
/// Redis.
///
/// The ledger's entry is the claim: adding it is atomic, says whether it was there, and may be repeated. So no mark is written
/// before the one that says finished. Who is read with no mark, and neither with a client's total that holds the message nor
/// with a read mark that covers it, adds it (`StateStore.addToLedger`); then the same is looked at once more, behind it on
/// the same connection. Where all is as it
/// was, the claim stands, as if it had been one step: bases, read marks and versions never go back. Where anything came
/// between, or the entry was there, or the ledger is full, nothing is decided by these answers: the script settles it
/// (`StateScripts.claim`), and puts right what was added too much.
struct PlainClaim {
    /// Entries of a ledger above which it is cut, which is the script's to do.
    static let sizeMax: Int64 = 1000

    /// What is counted is added to the ledger.
    let isCounted: Bool
    /// The entry is of this claim's making.
    private(set) var isAdded = false
    private var size: Int64 = 0
    /// As the tokens were read.
    private let tokenVersion: Int64
    private var base = BadgeReading()
    /// The ledger's age as its user's state has it; nil: none.
    private var epoch: Int64?
    /// Something stands against it.
    private var isSpecial = false
    /// What does not count was finished by another worker since its mark was read.
    private var isFinished = false

    init(isCounted: Bool, tokenVersion: Int64) {
        self.isCounted = isCounted
        self.tokenVersion = tokenVersion
    }

    /// Answers that are waited for.
    static let commandCount = 3

    // MARK: Answers

    mutating func didAdd(_ reply: borrowing RedisReply) { isAdded = reply.int64 == 1 }

    /// Of what does not count no entry says that another worker was at it; its mark does.
    mutating func didReadMark(_ reply: borrowing RedisReply) {
        guard !reply.isNull else { return }
        if PairMark.state(reply) == .finished { isFinished = true } else { isSpecial = true }
    }

    mutating func didCount(_ reply: borrowing RedisReply) {
        guard let count = reply.int64 else { return isSpecial = true }
        size = count
    }

    /// Version, base, read mark, age, and what was recalled last, as they stand behind the entry.
    mutating func didLook(_ reply: borrowing RedisReply, at subject: ClaimSubject) {
        guard reply.count == 5 else { return isSpecial = true }
        if reply[0].int64 ?? 0 != tokenVersion { isSpecial = true }
        if !reply[1].isNull {
            base = BadgeReading(base: reply[1])
            if base.holds(subject) { isSpecial = true }
        }
        if !reply[2].isNull, RecipientReplies.readMark(reply[2].bytes)?.covers(subject) ?? false { isSpecial = true }
        epoch = reply[3].int64
        if !reply[4].isNull, Self.holds(reply[4].bytes, StateKeys.digest(subject.id)) { isSpecial = true }
    }

    /// Whether a digest is among these, eight bytes each.
    private static func holds(_ digests: UnsafeRawBufferPointer, _ digest: UInt64) -> Bool {
        stride(from: 0, through: digests.count - 8, by: 8).contains { place in
            digests.loadUnaligned(fromByteOffset: place, as: UInt64.self) == digest
        }
    }

    /// One of them was refused: the script says how that is to be taken.
    mutating func didFail() { isSpecial = true }

    // MARK: What they mean

    /// The claim; nil: the script settles it.
    var reply: ClaimReply? {
        if isFinished { return ClaimReply(state: .finished, badge: nil, tokenVersion: tokenVersion) }
        guard !isSpecial, isAdded == isCounted, size >= (isCounted ? 1 : 0), size <= Self.sizeMax else { return nil }
        return ClaimReply(
            state: .fresh, badge: base.badge(size: size), tokenVersion: tokenVersion, adds: isCounted)
    }

    /// What is to be renewed of a ledger that was added to: its life, and the age that says when.
    func renewal(nowMs: Int64) -> (life: Bool, epoch: Int64?) {
        guard isCounted else { return (false, nil) }
        let now = StateKeys.ledgerEpoch(nowMs: nowMs)
        return (size == 1 || epoch != now, epoch == now ? nil : now)
    }
}

extension BadgeReading {
    /// The total was reported as of when the message was sent, or later.
    func holds(_ subject: ClaimSubject) -> Bool { atMs.map { $0 >= StateKeys.time(subject.sentMs) } ?? false }
}

extension UserState.ReadMark {
    /// As the script compares them.
    func covers(_ subject: ClaimSubject) -> Bool {
        covers(seq: subject.comparableSeq, sentMs: StateKeys.time(subject.sentMs))
    }
}
