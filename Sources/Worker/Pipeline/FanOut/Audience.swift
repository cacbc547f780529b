import Digits
import PushCore

/// Who is still to be started: given in the event, or read page by page from the group's hash or the index of an activity.
struct Audience {
    /// All of them, where the event gives them; else the present page. Consumed from `next`.
    private var given: [String] = []
    private var page: [MemberPage.Member] = []
    private var next = 0
    /// The group whose members are scanned; nil: all were given.
    let group: String?
    /// The Live Activity whose users are read; nil: there is none.
    let activity: String?
    /// They are a chunk of a large group's members, given with their levels.
    let isChunk: Bool
    /// Another page of its users is to be read.
    private var hasMoreUsers = false
    /// The last one of the page before; nil: none was read.
    private(set) var lastUser: String?
    /// HSCAN's cursor for the next page, 0 for the first; nil: there is none.
    private(set) var cursor: UInt64?
    /// The server that gives the cursor (`StateStore.memberServer`): another one would skip members by it.
    private var cursorServer: UInt32?
    /// An event may name a uid twice. So may a scan, while the hash is resized; that one the dedup key in work tells apart, since
    /// a set of all members of a giant group would cost more than all else that is kept of it.
    private var seen: Set<UTF8Key> = []
    private var startedCount = 0
    private var isAbandoned = false

    struct Member {
        var uid: String
        /// The level that the group's hash gives; nil where it was not read from there.
        var level: MuteLevel?
    }

    init(uids: [String]) {
        given = uids
        group = nil
        activity = nil
        isChunk = false
    }

    /// A chunk of a large group's members.
    init(chunk members: [MemberPage.Member]) {
        page = members
        group = nil
        activity = nil
        isChunk = true
    }

    /// All who bound the activity (contract section 2, `to.uids` of a `live_activity`).
    init(activity: String) {
        self.activity = activity
        group = nil
        isChunk = false
        hasMoreUsers = true
    }

    init(group: String) {
        self.group = group
        activity = nil
        isChunk = false
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

    /// A group, or more than one who is named.
    var isMany: Bool { isPaged || given.count > 1 }

    /// How many are named and not started.
    var givenCount: Int { given.count }

    /// They lie in `page`.
    private var isPaged: Bool { group != nil || activity != nil || isChunk }

    /// Each comes with the level that the group's hash gives him.
    var hasLevels: Bool { group != nil || isChunk }

    /// The next page is to be read.
    var wantsPage: Bool { cursor != nil || hasMoreUsers }

    /// Nobody is left to be started.
    var isEmpty: Bool { isPageDone && !wantsPage }

    /// More have been started than an ordinary group has: the rest goes by the lane of giant groups.
    var isGiant: Bool { isChunk || startedCount > 1000 }

    /// All of the present page are started.
    var isPageDone: Bool { next == (isPaged ? page.count : given.count) }

    /// Nobody was started yet, and nothing was read.
    var isUnread: Bool { startedCount == 0 && cursor == 0 && page.isEmpty }

    /// The next one who was not there before; nil: this page is empty.
    mutating func pop() -> Member? {
        while !isPageDone {
            let member =
                isPaged
                ? Member(uid: page[next].uid, level: hasLevels ? page[next].level : nil)
                : Member(uid: given[next], level: nil)
            next += 1
            if !isPaged, given.count > 1, !seen.insert(UTF8Key(member.uid)).inserted { continue }
            startedCount += 1
            return member
        }
        return nil
    }

    /// Nobody else is started, whatever is read from now on, and nothing is kept of those who were.
    mutating func abandon() {
        isAbandoned = true
        given = []
        page = []
        seen = []
        next = 0
        cursor = nil
        hasMoreUsers = false
    }

    /// A page of an activity's users.
    mutating func take(users: [String], isLast: Bool) {
        if isAbandoned { return }
        page = users.map { MemberPage.Member(uid: $0, level: .unset) }
        next = 0
        lastUser = users.last ?? lastUser
        hasMoreUsers = !isLast
    }

    /// The cursor to read the next page with; nil: there is none. On another server than the one that gave the cursor the scan
    /// begins anew: a cursor is a place in that server's own table, and marks tell who is done already.
    mutating func beginPage(_ server: UInt32) -> UInt64? {
        guard let cursor else { return nil }
        if cursorServer != server { self.cursor = 0 }
        cursorServer = server
        return self.cursor ?? cursor
    }

    /// A page of the server that `beginPage` was told of.
    mutating func take(_ page: [MemberPage.Member], cursor: UInt64) {
        if isAbandoned { return }
        self.page = page
        next = 0
        self.cursor = cursor == 0 ? nil : cursor
    }
}
