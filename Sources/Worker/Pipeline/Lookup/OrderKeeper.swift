import PushCore

/// Keeps one user's candidates of one conversation in the order of their records where some step out of it: those that
/// Redis could not answer about, and those that are read a second time.
///
/// A machine without clock: nothing is looked up while nobody is out of order.
struct OrderKeeper {
    /// (app, user, conversation), hashed: two that share one would only wait for each other.
    typealias Key = UInt64

    /// Who is out of order, and who waits behind them; earliest first by `Candidate.order`.
    private var late: [Key: [(order: UInt64, ref: WorkRef)]] = [:]
    private var behind: [Key: [WorkRef]] = [:]

    var isEmpty: Bool { late.isEmpty }

    static func key(app: String, uid: String, conversation: String) -> Key {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x6f72_6465_7230_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        hash.update(lengthThen: conversation)
        return hash.finish().0
    }

    /// The candidate does not go on for now; those of its key that began later wait.
    mutating func stepOut(_ ref: WorkRef, order: UInt64, key: Key) {
        if late[key, default: []].contains(where: { $0.ref == ref }) { return }
        late[key, default: []].append((order, ref))
    }

    /// True: an earlier one of its key is out of order, and it waits behind that one until `goOn` names it.
    mutating func waits(_ ref: WorkRef, order: UInt64, key: Key) -> Bool {
        guard let ahead = late[key], ahead.contains(where: { $0.ref != ref && $0.order < order }) else { return false }
        if !(behind[key]?.contains(ref) ?? false) { behind[key, default: []].append(ref) }
        return true
    }

    /// The candidate is claimed, or has ended. Returns those who waited behind it and may go on, in their order of coming.
    mutating func goOn(_ ref: WorkRef, key: Key) -> [WorkRef] {
        guard var ahead = late[key], let place = ahead.firstIndex(where: { $0.ref == ref }) else { return [] }
        ahead.remove(at: place)
        late[key] = ahead.isEmpty ? nil : ahead
        return behind.removeValue(forKey: key) ?? []
    }
}
