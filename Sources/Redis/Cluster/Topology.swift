/// What is under way to learn the map of the slots.
struct Topology {
    /// The map that is in force; nil: none yet.
    var map: SlotMap?
    /// Who was asked for one; nil: nobody is.
    var asked: NodeAddress?
    /// Whoever was asked first this time, to ask another one next.
    var turn = 0
    /// Somebody wanted one while one was asked for, which may be older than what he knew.
    var isWantedAgain = false
    /// When one was asked for last, monotonic.
    var askedNanos: UInt64 = 0
    /// Why the last one asked gave no map.
    var fault: RedisFault?

    /// Between two questions at least.
    static let pauseNanos: UInt64 = 100_000_000
    /// Between two looks whether all is well.
    static let watchNanos: UInt64 = 250_000_000
    /// Between two questions where all is well.
    static let calmNanos: UInt64 = 15_000_000_000
    /// The id of the question; others are those of `KeyCounting`.
    static let inquiry: UInt64 = 0
}
