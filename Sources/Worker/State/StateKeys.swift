// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// The keys and small texts of Carillon's own state.
///
/// | key | type | content | life |
/// |---|---|---|---|
/// | `c:u:{app:uid}` | hash | settings (`dn ds de dd dw dz dl sd pd ho la ph`) and tokens (`t` + kind + device); parked pushes of a device (`y` + device) | none |
/// | `c:s:{app:uid}` | hash | `v` token version, `b` badge base, `e` ledger's age, `k` digests of the last four messages that were revoked, `o` which owners are known (`KnownOwners`), `w` a lower badge that the devices do not have yet, `d` devices that account switches took, `g` devices that lost a token lately, `m`+conv mute, `r`+conv read marks | none, ≤ 2048 of both |
/// | `c:l:{app:uid}` | zset | the ledger: counted and unread messages, by conversation | 30-40 d, ≤ 1000 |
/// | `c:x:{app:uid}` | zset | members that a read or revoke removed from the ledger, by time | 24 h, ≤ 1000 |
/// | `c:d<n>:{app:uid}<kind><msg>` | string | the mark of one (user, message, kind); finished, with what happened (`TraceBytes`) | 24 h or until expiry; with a trace `trace.ttl_h` |
/// | `c:e:{app:msg}` | hash | of a group message, not on a cluster: uid → the mark of a finished member; under the empty name which try began first | as the marks |
/// | `c:k:{app:uid}` | hash | message → when it was acknowledged, and by which devices | 10 min after the last one, ≤ 1024 |
/// | `c:p:{app:uid}` | hash | push and device that reported it as opened → when | 7 d after the last one, ≤ 1024 |
/// | `c:r:{app:uid}` | hash | push and device that reported it as arrived → when | 7 d after the last one, ≤ 1024 |
/// | `c:b:{app:uid}` | set | with `clear_on_read`: devices that pushes were made for | none; those without a token go |
/// | `c:f:{app:uid}` | hash | with `limits.background_per_hour`: the background pushes of each device in its hour | 2 h after the last one, ≤ 256 |
/// | `c:a:{app:uid}` | hash | Live Activity → when it began, and `sent_ms` of its accepted end | 13 h after the last one, ≤ 256 |
/// | `c:v:{app:activity}` | zset | who bound a Live Activity, in the order of their bytes | 13 h after the last bind, ≤ 10 000 |
/// | `c:o:{app:token}` | string | the token's owner and version | none; 30 d once unbound |
/// | `c:i:{app:msg}` | string | the collapse id that a message's sender chose, and the time of a scheduled one (`KeptOriginal`) | as the mark |
/// | `c:z:{app:z<n>}` | zset | tokens removed because of APNs' answer (`Tombstone`), by when | 7 d |
/// | `c:y:{app:conv}` | string | an event of the conversation is parked with all its recipients | until it ends, 2 d |
/// | `c:w:{h<n>}` | hash | the heartbeat of a server: `n` count, `t` its time, `p`+partition below which user state is applied, `g` group of the workers, `gt` time of its last beat | none |
/// | `c:w:{h<n>}loss` | hash | the server returned with older data: where user state is applied again from | until it is |
/// | `c:w:{accepted}` | string | when an operator accepted that tokens are lost, Unix ms | 24 h |
/// | `c:w:{fleet}` | hash | `w`+mark of a process: its note for the operator's pages (JSON), `t`+mark: when | 10 min; 24 h after the last one |
/// | `c:n:{app:token}` | hash | unbinds that came before their bind | 24 h |
/// | `c:g:{app:uid}`, `c:h:…` | set | ledger members that DND held back, and those of an open digest | 48 h, ≤ 1000 |
/// | `c:q:{q<n>}` | zset | users with a due digest, by time; under a lease, by its end | until done |
///
/// The hash tag is the text between the first `{` and the next `}`. A `}` in an identifier would end it there, so that many users
/// could share a slot: such a tag is `{:app:id}` with `%7D` for `}` and `%25` for `%`. No app's id has a colon. The keys of others
/// (`p:`, `g:`) have the identifiers as they are. `<n>` is the length of the uid in bytes.
enum StateKeys {
    /// Lua counts in doubles. A larger time or number would lose its last digits.
    static let numberMax: Int64 = 9_007_199_254_740_991
    static let markSecondsMin: Int64 = 86_400
    static let markSecondsMax: Int64 = 61 * 86_400
    /// The mark of a revoke that comes before its message: longer than a scheduled message waits.
    static let revokedFirstSeconds: Int64 = 9 * 86_400
    static let acknowledgementSeconds: Int64 = 600
    static let reportSeconds: Int64 = 7 * 86_400
    static let activitySeconds: Int64 = 13 * 3600
    /// What a user without tokens leaves: a season, so that who comes back finds the settings.
    static let leftSeconds: Int64 = 90 * 86_400
    /// What one user's clients can make Redis keep, whatever they send.
    static let acknowledgementsMax: Int64 = 1_024
    static let acknowledgementBytesMax: Int64 = 2_048
    static let reportsMax: Int64 = 1_024
    static let activitiesMax: Int64 = 256

    /// A ledger's lifetime, and the length of an age: no entry is removed before it is thirty days old.
    static let ledgerSeconds: Int64 = 3_456_000
    static let ledgerEpochMs: Int64 = 691_200_000
    /// A ledger that was not renewed for so many ages may have expired.
    static let ledgerEpochs = ledgerSeconds * 1000 / ledgerEpochMs

    /// The period in which the ledger's lifetime is renewed once.
    static func ledgerEpoch(nowMs: Int64) -> Int64 { time(nowMs) / ledgerEpochMs }

    static func time(_ ms: Int64) -> Int64 { min(max(0, ms), numberMax) }

    /// Twenty digits that sort like the numbers, negative ones too. Lua compares them exactly as text.
    static func version(_ version: Int64) -> String {
        let digits = String(UInt64(bitPattern: version) ^ (1 << 63))
        return String(repeating: "0", count: 20 - digits.count) + digits
    }

    /// The number written by `version(_:)`; nil for any other text.
    static func version(of text: UnsafeRawBufferPointer) -> Int64? {
        guard text.count == 20, let bits = Decimal.unsigned(text) else { return nil }
        return Int64(bitPattern: bits ^ (1 << 63))
    }

    static func version(of text: String) -> Int64? {
        var text = text
        return text.withUTF8 { version(of: UnsafeRawBufferPointer($0)) }
    }

    /// The lifetime of a mark: at least a day, and until its message expires.
    static func markSeconds(expireAtMs: Int64, nowMs: Int64) -> Int64 {
        let left = (time(expireAtMs) - time(nowMs)) / 1000 + 3600
        return min(max(markSecondsMin, left), markSecondsMax)
    }

    /// The hash tag of Carillon's own keys for an identifier, with its braces.
    static func tag(_ app: String, _ id: String) -> String {
        id.utf8.contains(UInt8(ascii: "}")) ? "{:\(app):\(escaped(id))}" : "{\(app):\(id)}"
    }

    private static func escaped(_ id: String) -> String {
        var bytes: [UInt8] = []
        for byte in id.utf8 {
            switch byte {
            case UInt8(ascii: "}"): bytes += Array("%7D".utf8)
            case UInt8(ascii: "%"): bytes += Array("%25".utf8)
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The identifier in a tag without its braces; nil if it is not of this app.
    static func id(inTag tag: UnsafeRawBufferPointer, app: String, atMost limit: Int) -> String? {
        let plain = Array("\(app):".utf8)
        if tag.starts(with: plain) {
            return CompactText.text(UnsafeRawBufferPointer(rebasing: tag.dropFirst(plain.count)), atMost: limit)
        }
        guard tag.first == UInt8(ascii: ":"), tag.dropFirst().starts(with: plain) else { return nil }
        var bytes: [UInt8] = []
        var rest = tag.dropFirst(plain.count + 1)
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                bytes.append(rest.first == UInt8(ascii: "7") ? UInt8(ascii: "}") : byte)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes.withUnsafeBytes { CompactText.text($0, atMost: limit) }
    }

    /// Eight bytes that represent a conversation in the ledger. Short members keep the ledger in one compact block.
    ///
    /// After a collision within one user's conversations, a read of one would also clear the other.
    static func digest(_ conversation: String) -> UInt64 {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x6c65_6467_6572_3031)
        hash.update(lengthThen: conversation)
        return hash.finish().0.littleEndian
    }
}

extension RedisCommand {
    /// `<name>:{app:id}` as one argument.
    mutating func key(_ name: StaticString, _ app: String, _ id: String) {
        part(word: name)
        part(byte: UInt8(ascii: ":"))
        ownTag(app, id)
        end()
    }

    /// The same for a key that others write.
    mutating func key(ofOthers name: StaticString, _ app: String, _ id: String) {
        part(word: name)
        part(byte: UInt8(ascii: ":"))
        part(hashTag: app, id)
        end()
    }

    /// `StateKeys.tag`
    private mutating func ownTag(_ app: String, _ id: String) {
        let endsTag = id.withUTF8Bytes { $0.contains(UInt8(ascii: "}")) }
        endsTag ? part(StateKeys.tag(app, id)) : part(hashTag: app, id)
    }

    /// `<name><length of uid>:{app:uid}<kind><suffix>` as one argument.
    mutating func key(
        _ name: StaticString, _ app: String, _ uid: String, _ kind: PairKind? = nil, suffix: String
    ) {
        part(word: name)
        part(Int64(uid.utf8.count))
        part(byte: UInt8(ascii: ":"))
        ownTag(app, uid)
        if let kind { part(byte: kind.letter) }
        part(suffix)
        end()
    }

    /// A letter and an identifier as one argument.
    mutating func field(_ letter: StaticString, _ id: String) {
        part(word: letter)
        part(id)
        end()
    }

    /// An optional number; empty if absent.
    mutating func optional(_ number: Int64?) {
        if let number { part(number) }
        end()
    }

    mutating func digestPart(_ digest: UInt64) {
        withUnsafeBytes(of: digest) { part($0) }
    }
}
