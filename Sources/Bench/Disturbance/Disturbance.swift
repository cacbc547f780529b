/// What the APNs client is put through by `carillon bench --apns --disturb`; each has figures with bars.
enum Disturbance: String, CaseIterable {
    case soak
    case goAway = "goaway"
    case badTokens = "bad-tokens"
    case frozen
    case far

    static let names = allCases.map(\.rawValue).joined(separator: ", ")

    /// When one connection freezes, since the simulator's start.
    static let frozenAfterSeconds = 4
    static let goAwayEverySeconds = 5
    /// One push in so many goes to a token that APNs never saw.
    static let badEvery = 20
    /// The round trip where the line is what bounds a connection, not the processors: a window of 64 KB carries some
    /// hundred pushes in it.
    static let tripMs = 40
}

/// What the simulator does to make a disturbance, as the text of a scenario.
enum DisturbanceScenario {
    static let goAway = "{\"goaway_every_s\": \(Disturbance.goAwayEverySeconds)}"
    static let goAwayAfar = "{\"goaway_every_s\": \(Disturbance.goAwayEverySeconds), \"connection\": {\(trip)}}"
    static let afar = "{\"connection\": {\(trip)}}"
    /// A rejection shrinks its connection to one stream until the next acceptance.
    static let badTokens = "{\"connection\": {\"shrink_on_rejection\": true}, \(rejections)}"
    static let badTokensAfar = "{\"connection\": {\(trip), \"shrink_on_rejection\": true}, \(rejections)}"
    /// The same rejections, and nothing shrinks: what they cost by themselves.
    static let badTokensUnshrunk = "{\(rejections)}"
    static let frozen = """
        {"rules": [{"match": {"after_s": \(Disturbance.frozenAfterSeconds), "count": 1}, "fault": {"kind": "freeze"}}]}
        """
    static let far = "{\"connection\": {\"rtt_ms\": 80, \"window\": 65535}}"

    private static let trip = "\"rtt_ms\": \(Disturbance.tripMs)"
    private static let rejections = """
        "rules": [{"match": {"token": "\(DisturbanceLoad.badPrefix)"}, "answer": {"status": 400, "reason": "BadDeviceToken"}}]
        """
}

/// One load on one client.
struct LoadPlan: Sendable {
    var endpoint: String
    var credentials: String
    /// Of the simulator, for its processor time.
    var simulator: Int32
    /// Ends after so many pushes, or after so many seconds.
    var pushes = Int.max
    var seconds = Double.infinity
    /// From here on it is measured: what the limiter and the pool need to find their size.
    var warmSeconds = 2.0
    /// An even pace; nil: as fast as it goes.
    var perSecond: Int?
    /// One push in so many goes to a token that APNs never saw.
    var badEvery: Int?
    /// Only in every second stretch of so many seconds; nil: all the time.
    var badStretches: Double?
    /// Those are marked as tokens that were never confirmed.
    var marksBad = false
    var payload: [UInt8]
    var connections = 4
    var streams = 1_000
    /// The client's memory is noted whenever so many pushes ended; 0: never.
    var memoryEvery = 0
}

/// What came of it.
struct LoadOutcome: Sendable {
    var sent = 0
    var accepted = 0
    var rejected = 0
    /// Neither: expired, unknown, …
    var other = 0
    /// Written more than once.
    var resent = 0
    /// From `send` to the outcome: the longest of those, and of all.
    var resentNanosMax: UInt64 = 0
    var nanosMax: UInt64 = 0
    /// Outcomes, and the moments when connections were drained.
    var series = OutcomeSeries()
    /// Ready connections, the most at once.
    var connections = 0
    /// Resident bytes, one for each `memoryEvery`.
    var memory: [Int] = []
    var seconds: Double = 0
    /// Processor time per outcome after the warm-up, in microseconds: this process, and the simulator's.
    var clientMicros = 0.0
    var simulatorMicros = 0.0
    /// The part of the machine, in percent, that others had meanwhile.
    var othersPercent = 0.0
    var warmSeconds = 0.0
    /// What the simulator itself counted.
    var acceptedByServer = 0

    var ended: Int { accepted + rejected + other }
    /// Outcomes per second after the warm-up.
    var pace: Double { series.perSecond(from: warmSeconds) }
    /// How far the lowest of the seconds that begin so long after a GOAWAY lies below the mean, in percent.
    func deepest(after seconds: Double) -> Double {
        series.seconds(afterMarks: seconds).min().map { BenchFigure.below($0, pace) } ?? .nan
    }

    /// How far the seconds that begin with a GOAWAY lie below the others, in percent.
    var dipAtMarks: Double {
        series.aroundMarks(from: warmSeconds).map { BenchFigure.below($0.with, $0.without) } ?? .nan
    }
}
