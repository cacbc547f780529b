// SPDX-License-Identifier: Apache-2.0
public import APNsProtocol

/// Hash prefix of the ids of all pushes to one recipient for one message.
///
/// These ids are UUIDs of version 8 (RFC 9562, 5.8) over (app, uid, msg_id, kind, token), equal for every attempt and
/// every worker. The first four parts are hashed once here.
public struct PushIDPrefix: Sendable {
    private var hash = SipHash128(key0: Self.key0, key1: Self.key1)

    /// - Parameters:
    ///   - msgID: for a Live Activity its event id, because `msg_id` is optional there.
    ///   - kind: `message`, `revoke` or `live_activity`, because pushes for one message may differ by kind.
    public init(app: String, uid: String, msgID: String, kind: String) {
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        hash.update(lengthThen: msgID)
        hash.update(lengthThen: kind)
    }

    /// The id of the push to a token; without a token, the id of the recipient and message.
    ///
    /// - Parameter tokenHex: lower case, as in `TokenRecord`.
    public func id(tokenHex: String = "") -> PushID {
        var hash = hash
        hash.update(lengthThen: tokenHex)
        let (first, second) = hash.finish()
        return PushID(digest: first, second)
    }

    // Must never change: other values would change the ids of pushes in progress. ("carillon" "pushpid1" in ASCII.)
    private static var key0: UInt64 { 0x6361_7269_6c6c_6f6e }
    private static var key1: UInt64 { 0x7075_7368_7069_6431 }
}

extension PushID {
    /// The id of one push. `PushIDPrefix` is cheaper for several pushes to one recipient.
    public static func make(app: String, uid: String, msgID: String, kind: String, tokenHex: String) -> PushID {
        PushIDPrefix(app: app, uid: uid, msgID: msgID, kind: kind).id(tokenHex: tokenHex)
    }

    /// 122 bits of the digest, with version and variant in their places.
    fileprivate init(digest first: UInt64, _ second: UInt64) {
        self.init(
            high: first.byteSwapped & 0xffff_ffff_ffff_0fff | 0x8000,
            low: second.byteSwapped & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
    }
}
