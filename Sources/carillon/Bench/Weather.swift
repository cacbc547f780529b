import JSON

/// What the APNs client is put through by `carillon bench --apns --weather`; each has a figure with a bar.
enum Weather: String, CaseIterable {
    case soak
    case goAway = "goaway"
    case badTokens = "bad-tokens"
    case frozen
    case far

    static let names = allCases.map(\.rawValue).joined(separator: ", ")

    /// When one connection freezes, since the simulator's start.
    static let frozenAfterSeconds = 4
    static let goAwayEverySeconds = 5

    /// The simulator's scenario; nil: fair weather.
    var scenario: String? {
        switch self {
        case .soak: nil
        case .goAway: "{\"goaway_every_s\": \(Self.goAwayEverySeconds)}"
        case .badTokens:
            """
            {"connection": {"shrink_on_rejection": true}, "rules": [
              {"match": {"token": "\(WeatherLoad.badPrefix)"}, "answer": {"status": 400, "reason": "BadDeviceToken"}}]}
            """
        case .frozen:
            """
            {"rules": [{"match": {"after_s": \(Self.frozenAfterSeconds), "count": 1}, "fault": {"kind": "freeze"}}]}
            """
        case .far: "{\"connection\": {\"rtt_ms\": 80, \"window\": 65535}}"
        }
    }
}

/// One load on one client.
struct WeatherPlan: Sendable {
    var endpoint: String
    var credentials: String
    /// Ends after so many pushes, or after so many seconds.
    var pushes = Int.max
    var seconds = Double.infinity
    /// An even pace; nil: as fast as it goes.
    var perSecond: Int?
    /// One push in so many goes to a token that APNs never saw.
    var badEvery: Int?
    /// Those are marked as tokens that were never confirmed.
    var marksBad = false
    var payload: [UInt8]
    var connections = 4
    var streams = 1_000
    /// The client's memory is noted whenever so many pushes ended; 0: never.
    var memoryEvery = 0
}

/// What came of it.
struct WeatherOutcome: Sendable {
    var sent = 0
    var accepted = 0
    var rejected = 0
    /// Neither: expired, unknown, …
    var other = 0
    /// Written more than once.
    var resent = 0
    /// From `send` to the outcome, the longest of those, and of all.
    var resentNanosMax: UInt64 = 0
    var nanosMax: UInt64 = 0
    /// Outcomes in each tenth of a second.
    var tenths: [Int] = []
    /// Ready connections, the most at once.
    var connections = 0
    /// Resident bytes, one for each `memoryEvery`.
    var memory: [Int] = []
    var seconds: Double = 0
    /// What the simulator itself counted.
    var acceptedByServer = 0

    var ended: Int { accepted + rejected + other }

    /// Outcomes per second from `first` seconds on, the last tenth left out: it is not whole.
    func perSecond(from first: Double) -> Double {
        let part = tenths.dropLast().dropFirst(Int(first * 10))
        return part.isEmpty ? 0 : Double(part.reduce(0, +)) * 10 / Double(part.count)
    }

    /// The fewest outcomes in any second, wherever it begins.
    func lowestSecond(from first: Double) -> Double {
        let part = Array(tenths.dropLast().dropFirst(Int(first * 10)))
        guard part.count >= 10 else { return 0 }
        return Double((0...(part.count - 10)).map { part[$0..<($0 + 10)].reduce(0, +) }.min() ?? 0)
    }

    /// Outcomes per second in the seconds around each multiple of `every` seconds, and in all others.
    func perSecond(around every: Int, from first: Double) -> (around: Double, others: Double) {
        let period = every * 10
        var sums = (around: 0.0, aroundCount: 0.0, others: 0.0, othersCount: 0.0)
        for (place, count) in tenths.enumerated().dropLast().dropFirst(Int(first * 10)) {
            if (place + 5) % period < 10 {
                sums.around += Double(count)
                sums.aroundCount += 1
            } else {
                sums.others += Double(count)
                sums.othersCount += 1
            }
        }
        return (sums.around * 10 / max(1, sums.aroundCount), sums.others * 10 / max(1, sums.othersCount))
    }
}
