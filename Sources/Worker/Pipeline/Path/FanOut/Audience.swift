// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// The recipients that are still to be started: given in the event, or read page by page from the group's hash, the index of an
/// activity, or the owners of tokens.
struct Audience {
    /// All of them, if the event gives them. Consumed from `next`.
    private var given: [String] = []
    /// The pages; nil for given recipients. By reference, because most events have one recipient and no pages.
    private let pages: Pages?
    private var next = 0
    /// An event may name a uid twice. A scan may too, while the hash is resized; the dedup key in progress catches
    /// that, because a set of all members of a giant group would be too expensive.
    private var seen: Set<UTF8Key> = []
    private var startedCount: Int32 = 0
    private var isAbandoned = false

    /// The pages and their position.
    private final class Pages {
        let source: Source
        /// The present page. Consumed from `next`.
        var page: [MemberPage.Member] = []
        /// Another page of the activity's users, or of the tokens' owners, is to be read.
        var hasMoreUsers = false
        /// How many tokens' owners were read.
        var tokensRead = 0
        /// Some token has no owner.
        var hasUnownedTokens = false
        /// The last user of the previous page; nil if none was read.
        var lastUser: String?
        /// HSCAN's cursor for the next page, 0 for the first; nil if there is none.
        var cursor: UInt64?
        /// The server of the cursor (`StateStore.memberServer`). With it another server would skip members.
        var cursorServer: UInt32?

        enum Source {
            case group(String)
            case activity(String)
            case tokens([String])
            /// A chunk of a large group's members, given with their levels.
            case chunk
        }

        init(_ source: Source) { self.source = source }
    }

    struct Member {
        var uid: String
        /// The level from the group's hash; nil if it was not read from there.
        var level: MuteLevel?
    }

    init(uids: [String]) {
        given = uids
        pages = nil
    }

    /// A chunk of a large group's members.
    init(chunk members: [MemberPage.Member]) {
        let pages = Pages(.chunk)
        pages.page = members
        self.pages = pages
    }

    /// All users who bound the activity (contract section 2, `to.uids` of a `live_activity`).
    init(activity: String) {
        let pages = Pages(.activity(activity))
        pages.hasMoreUsers = true
        self.pages = pages
    }

    /// The owners of the tokens (contract section 2, `to.tokens`).
    init(tokens: [String]) {
        let pages = Pages(.tokens(tokens))
        pages.hasMoreUsers = true
        self.pages = pages
    }

    init(group: String) {
        let pages = Pages(.group(group))
        pages.cursor = 0
        self.pages = pages
    }

    /// Given recipients, else the owners of given tokens, else the members of the group of that conversation (contract section
    /// 2, `to`).
    init(of message: borrowing Message) {
        if let uids = message.to.uids {
            self.init(uids: uids)
        } else if let tokens = message.to.limit?.tokens {
            self.init(tokens: tokens)
        } else {
            self.init(group: message.conversation.id)
        }
    }

    /// The group to scan for members; nil for none.
    var group: String? { if case .group(let group) = pages?.source { group } else { nil } }

    /// The Live Activity to read users of; nil for none.
    var activity: String? { if case .activity(let activity) = pages?.source { activity } else { nil } }

    /// The tokens of the next page of owners; nil if the audience is not a list of tokens.
    var tokenPage: ArraySlice<String>? {
        guard let pages, case .tokens(let tokens) = pages.source else { return nil }
        return tokens.dropFirst(pages.tokensRead).prefix(Self.tokensPerPage)
    }

    /// A token's place in its page travels in a byte of a tag.
    private static let tokensPerPage = 100

    /// Some token that was read has no owner.
    var hasUnownedTokens: Bool { pages?.hasUnownedTokens ?? false }

    /// They are a chunk of a large group's members.
    var isChunk: Bool { if case .chunk = pages?.source { true } else { false } }

    /// The last user of the previous page; nil if none was read.
    var lastUser: String? { pages?.lastUser }

    /// HSCAN's cursor for the next page, 0 for the first; nil if there is none.
    var cursor: UInt64? { pages?.cursor }

    /// A group, or more than one named recipient.
    var isMany: Bool { pages != nil || given.count > 1 }

    /// Number of named recipients that are not started.
    var givenCount: Int { given.count }

    /// Each comes with the level that the group's hash gives the member.
    var hasLevels: Bool {
        switch pages?.source {
        case .group, .chunk: true
        case .activity, .tokens, nil: false
        }
    }

    /// The next page must be read.
    var wantsPage: Bool { pages.map { $0.cursor != nil || $0.hasMoreUsers } ?? false }

    /// No recipient is left to be started.
    var isEmpty: Bool { isPageDone && !wantsPage }

    /// More recipients have been started than an ordinary group has: the rest uses the lane of giant groups.
    var isGiant: Bool { isChunk || startedCount > 1000 }

    /// All of the present page are started.
    var isPageDone: Bool { next == (pages?.page.count ?? given.count) }

    /// The recipients are read page by page, nothing was read, and none was started.
    var isUnread: Bool {
        guard let pages, startedCount == 0, pages.page.isEmpty, wantsPage else { return false }
        return pages.cursor ?? 0 == 0 && pages.lastUser == nil && pages.tokensRead == 0
    }

    /// The next new recipient; nil if this page is used up.
    mutating func pop() -> Member? {
        if let pages {
            guard next < pages.page.count else { return nil }
            defer { (next, startedCount) = (next + 1, startedCount + 1) }
            return Member(uid: pages.page[next].uid, level: hasLevels ? pages.page[next].level : nil)
        }
        while next < given.count {
            let uid = given[next]
            next += 1
            if given.count > 1, !seen.insert(UTF8Key(uid)).inserted { continue }
            startedCount += 1
            return Member(uid: uid, level: nil)
        }
        return nil
    }

    /// Starts no further recipients, whatever is read, and releases the data about started ones.
    mutating func abandon() {
        isAbandoned = true
        given = []
        seen = []
        next = 0
        pages?.page = []
        pages?.cursor = nil
        pages?.hasMoreUsers = false
    }

    /// A page of an activity's users.
    mutating func take(users: [String], isLast: Bool) {
        guard let pages, !isAbandoned else { return }
        pages.page = users.map { MemberPage.Member(uid: $0, level: .unset) }
        next = 0
        pages.lastUser = users.last ?? pages.lastUser
        pages.hasMoreUsers = !isLast
    }

    /// The owners of the tokens of a page, nil for a token without an owner.
    mutating func take(owners: [String?]) {
        guard let pages, case .tokens(let tokens) = pages.source, !isAbandoned else { return }
        pages.page = []
        for case let uid? in owners where seen.insert(UTF8Key(uid)).inserted {
            pages.page.append(MemberPage.Member(uid: uid, level: .unset))
        }
        next = 0
        pages.tokensRead += owners.count
        if owners.contains(nil) { pages.hasUnownedTokens = true }
        pages.hasMoreUsers = !owners.isEmpty && pages.tokensRead < tokens.count
    }

    /// The cursor for the next page; nil for none. On a server other than the cursor's, the scan starts over: a cursor
    /// is a position in that server's own table, and marks show finished members.
    mutating func beginPage(_ server: UInt32) -> UInt64? {
        guard let pages, pages.cursor != nil else { return nil }
        if pages.cursorServer != server { pages.cursor = 0 }
        pages.cursorServer = server
        return pages.cursor
    }

    /// A page from the server that was passed to `beginPage`.
    mutating func take(_ page: [MemberPage.Member], cursor: UInt64) {
        guard let pages, !isAbandoned else { return }
        pages.page = page
        next = 0
        pages.cursor = cursor == 0 ? nil : cursor
    }
}
