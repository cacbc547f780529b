// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Keys with a recent reply over the limit. One read of such a key keeps Redis and the connection busy as long as thousands of
/// others, so it is not read for a minute, and then once at a time.
struct OversizedKeys {
    /// The hash of (app, user, kind of read). After a collision two keys count as too large together.
    typealias Key = UInt64

    private static let forgetNanos: UInt64 = 60_000_000_000
    /// Then one reading shows whether it still is; until its answer the others go without.
    private static let probeNanos: UInt64 = 10_000_000_000

    private var until: [Key: UInt64] = [:]
    private let keysMax: Int

    init(keysMax: Int = 4096) {
        self.keysMax = max(1, keysMax)
    }

    var isEmpty: Bool { until.isEmpty }
    var count: Int { until.count }

    static func key(app: String, uid: String, question: Question) -> Key {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x6f76_6572_7a30_3031 &+ UInt64(question.rawValue))
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        return hash.finish().0
    }

    /// When full, all are dropped: each then costs one more read.
    mutating func note(_ key: Key, nowNanos: UInt64) {
        if until.count >= keysMax { until.removeAll() }
        until[key] = nowNanos &+ Self.forgetNanos
    }

    /// It was read whole.
    mutating func forget(_ key: Key) { until[key] = nil }

    /// - Returns: whether it is read now; of a known one that is the next probe.
    mutating func admit(_ key: Key, nowNanos: UInt64) -> Bool {
        guard let end = until[key] else { return true }
        if nowNanos < end { return false }
        until[key] = nowNanos &+ Self.probeNanos
        return true
    }
}
