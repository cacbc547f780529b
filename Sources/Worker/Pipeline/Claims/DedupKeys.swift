import PushCore

/// Which (app, user, message, kind) are in work on this shard, and who waits for their end: repeats that came meanwhile.
///
/// A claim cannot tell a pair in work here from one that a crash left behind, so a repeat waits until the first one is
/// finished, and then finds its mark.
struct DedupKeys {
    typealias Key = PushID

    private var waiting: [Key: [WorkRef]] = [:]

    var count: Int { waiting.count }

    /// True: it is taken. False: it is in work already, and `ref` waits for its end.
    mutating func take(_ key: Key, _ ref: WorkRef) -> Bool {
        // Mostly nobody holds it, so it is taken with one look, and given back where somebody does.
        guard let others = waiting.updateValue([], forKey: key) else { return true }
        waiting[key] = others + [ref]
        return false
    }

    /// Its holder has ended. Returns who waited.
    mutating func release(_ key: Key) -> [WorkRef] { waiting.removeValue(forKey: key) ?? [] }
}
