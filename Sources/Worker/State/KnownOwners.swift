// SPDX-License-Identifier: Apache-2.0
import Redis

/// The known owners of a user's tokens: field `o` of the user's state, `<version of the tokens> <reign of the Redis
/// master>`.
///
/// A token is in its user's hash and, with its owner, in a slot of its own. A change of owner writes both in sequence
/// and may be interrupted in between. So a push trusts the user's hash alone only if all owners of this token version
/// were read and were this user, on the same Redis master. Every bind, takeover, unbind and restore raises the version,
/// and a master that lacks another's writes has another reign (`RedisServerFacts.reign`).
enum KnownOwners {
    /// For a user with more tokens, the owners are read for each push.
    static let tokensMax = 8

    /// - Returns: whether the field confirms this version.
    static func holds(_ field: borrowing RedisReply, version: Int64, reign: Int64?) -> Bool {
        guard let reign, version != 0, !field.isNull else { return false }
        var text = CompactText(field.bytes)
        return text.number() == version && text.number() == reign
    }
}

extension StateStore {
    /// Notes that the owners of this version of the user's tokens were read and were this user.
    ///
    /// If it is lost, or written after the version rose, it has no effect: the owners are read again.
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
