import Redis

/// What is known of whose a user's tokens are: field `o` of his state, `<version of his tokens> <reign of his Redis master>`.
///
/// A token stands in its user's hash and, with its owner, in a slot of its own; a change of owner writes both, one after the
/// other, and may be cut in between. So a push to a token trusts the user's hash alone only where all owners of that version
/// of his tokens were asked for and were he, at the same Redis master: whatever is bound, taken, unbound or brought back
/// raises the version, and a master that lacks what another one took has another reign (`RedisServerFacts.reign`).
enum KnownOwners {
    /// A user with more tokens is asked about with each push: of those it goes to.
    static let tokensMax = 8

    /// Whether the field says so of these; of no version nothing is known.
    static func holds(_ field: borrowing RedisReply, version: Int64, reign: Int64?) -> Bool {
        guard let reign, version != 0, !field.isNull else { return false }
        var text = CompactText(field.bytes)
        return text.number() == version && text.number() == reign
    }
}

extension StateStore {
    /// Notes that the owners of that version of the user's tokens were asked for, and were he.
    ///
    /// Lost, or noted after the version rose, it says nothing: they are asked for again.
    func noteOwners(app: String, uid: String, version: Int64, reign: Int64, tag: UInt64) throws(RedisFault) {
        try client.command(tag, claims) { command in
            command.arg(word: "HSET")
            command.key("c:s", app, uid)
            command.arg(word: "o")
            command.part(version)
            command.part(word: " ")
            command.part(reign)
            command.end()
        }
    }
}
