import PushCore

/// Who is still to be started: given in the event, or read page by page from the group's hash.
struct Audience {
    /// A page, or all of them; consumed from `next`.
    private var members: [Member] = []
    private var next = 0
    /// The group whose members are scanned; nil: all were given.
    let group: String?
    /// HSCAN's cursor for the next page, 0 for the first; nil: there is none.
    private(set) var cursor: UInt64?
    /// An event may name a uid twice. So may a scan, while the hash is resized; that one the pair in work tells apart, since
    /// a set of all members of a giant group would cost more than all else that is kept of it.
    private var seen: Set<String> = []
    private var startedCount = 0
    private var isAbandoned = false

    struct Member {
        var uid: String
        /// The level that the group's hash gives; nil where it was not read from there.
        var level: MuteLevel?
    }

    init(uids: [String]) {
        members = uids.map { Member(uid: $0, level: nil) }
        group = nil
    }

    init(group: String) {
        self.group = group
        cursor = 0
    }

    /// Given recipients, else the members of the group of that conversation (contract section 2, `to.uids`).
    init(of message: borrowing Message) {
        if let uids = message.to.uids {
            self.init(uids: uids)
        } else {
            self.init(group: message.conversation.id)
        }
    }

    /// Nobody is left to be started.
    var isEmpty: Bool { next == members.count && cursor == nil }

    /// More have been started than an ordinary group has: the rest goes by the lane of giant groups.
    var isGiant: Bool { startedCount > 1000 }

    /// All of the present page are started.
    var isPageDone: Bool { next == members.count }

    /// Nobody was started yet, and nothing was read.
    var isUnread: Bool { cursor == 0 && members.isEmpty }

    /// The next one who was not there before; nil: this page is empty.
    mutating func pop() -> Member? {
        while next < members.count {
            let member = members[next]
            next += 1
            if group == nil, members.count > 1, !seen.insert(member.uid).inserted { continue }
            startedCount += 1
            return member
        }
        return nil
    }

    /// Nobody else is started, whatever is read from now on.
    mutating func abandon() {
        isAbandoned = true
        members.removeAll()
        next = 0
        cursor = nil
    }

    mutating func take(_ page: [Member], cursor: UInt64) {
        if isAbandoned { return }
        members = page
        next = 0
        self.cursor = cursor == 0 ? nil : cursor
    }
}
