// SPDX-License-Identifier: Apache-2.0
import Simulation

/// The command's options.
struct Options {
    var seeds = 100
    var first: UInt64 = 1
    var keepsLog = false
    var message: String?
    var shrinks = false
    var faults: [FaultKind]?
    /// In every world.
    var kinds: [Plan.Kind] = []
    /// The result as JSON, one object a line.
    var isJSON = false
    /// Ends at the first seed that fails.
    var stops = false
    var skipped: Set<UInt64> = []
    /// How often each combination occurred.
    var printsCoverage = false
    var wantsHelp = false

    /// Nil: an option is unknown, or its value is.
    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let word = rest.popFirst() {
            switch word {
            case "--log": keepsLog = true
            case "--shrink": shrinks = true
            case "--json": isJSON = true
            case "--stop": stops = true
            case "--coverage": printsCoverage = true
            case "--help", "-h": wantsHelp = true
            case "--seeds", "--first", "--seed", "--msg", "--faults", "--kinds", "--skip":
                guard let value = rest.popFirst(), take(word, value) else { return nil }
            default: return nil
            }
        }
    }

    private mutating func take(_ word: String, _ value: String) -> Bool {
        switch word {
        case "--seeds":
            guard let count = Int(value), count >= 0 else { return false }
            seeds = count
        case "--first", "--seed":
            guard let number = UInt64(value) else { return false }
            first = number
            if word == "--seed" { seeds = 1 }
        case "--msg":
            keepsLog = true
            message = value
        case "--skip":
            let numbers = value.split(separator: ",").map { UInt64($0) }
            guard !numbers.contains(nil) else { return false }
            skipped = Set(numbers.compactMap { $0 })
        case "--kinds":
            let names = value.split(separator: ",").map(String.init)
            kinds = names.compactMap(Plan.Kind.init(rawValue:))
            guard kinds.count == names.count else { return false }
        default:
            let names = value.split(separator: ",").map(String.init)
            let kinds = names.compactMap(FaultKind.init(rawValue:))
            guard kinds.count == names.count else { return false }
            faults = kinds
        }
        return true
    }

    static let help = """
        usage: simulation [--seeds N] [--first K] [options]

        Runs a fleet of real workers with modelled servers, one world per seed, in virtual time, and judges each world.
        The same seed and build give the same log. docs/simulation.md explains the rules.

          --seeds N      so many seeds (100)
          --first K      from this seed on (1)
          --seed K       this seed only
          --faults A,B   these kinds of faults only: \(FaultKind.allCases.map(\.rawValue).joined(separator: ", "))
          --kinds A,B    these kinds of traffic in every world: \(Plan.Kind.allCases.map(\.rawValue).joined(separator: ", "))
          --log          prints the log of each seed
          --msg ID       prints the story of one message, such as m12
          --shrink       looks for a smaller world that breaks a rule too
          --stop         ends at the first seed that fails
          --coverage     how often each combination, reason and option occurred, and which never did
          --skip A,B     leaves these seeds out
          --json         the result as JSON: a line per failed seed, and a line for all

        A seed that fails runs a second time; the result says whether both runs are equal. Progress goes to standard error.

        exit code: 0 no rule was broken, 1 a rule was broken, 64 bad usage
        """
}
