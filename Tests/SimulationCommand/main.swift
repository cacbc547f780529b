import Glibc
import Simulation

/// `simulation [--seeds N] [--first K] [--seed K] [--log] [--msg ID] [--shrink] [--faults A,B]`
struct Options {
    var seeds = 100
    var first: UInt64 = 1
    var keepsLog = false
    var message: String?
    var shrinks = false
    var faults: [FaultKind]?

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let word = rest.popFirst() {
            switch word {
            case "--log": keepsLog = true
            case "--shrink": shrinks = true
            case "--seeds":
                guard let count = rest.popFirst().flatMap({ Int($0) }) else { return nil }
                seeds = count
            case "--first", "--seed":
                guard let number = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                first = number
                if word == "--seed" { seeds = 1 }
            case "--msg":
                keepsLog = true
                message = rest.popFirst()
            case "--faults":
                let names = (rest.popFirst() ?? "").split(separator: ",").map(String.init)
                let kinds = names.compactMap(FaultKind.init(rawValue:))
                guard kinds.count == names.count else { return nil }
                faults = kinds
            default: return nil
            }
        }
    }
}

func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func run(_ options: Options) throws -> Bool {
    var template = Array("/tmp/simulation-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { return false }
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
        unlink(folder + "/AuthKey_ABC123DEFG.p8")
        rmdir(folder)
    }
    let simulation = try Simulation(folder: folder)
    let began = now()
    var (failed, events, seconds): ([UInt64], Int, Double) = ([], 0, 0)
    for seed in options.first..<options.first + UInt64(max(0, options.seeds)) {
        let plan = Plan(seed: seed, faults: options.faults)
        let report = try simulation.run(plan, keepsLog: options.keepsLog, message: options.message)
        for line in report.lines { print(line) }
        events += report.events
        seconds += report.seconds
        if options.keepsLog { print("hash \(String(report.hash, radix: 16))") }
        guard !report.violations.isEmpty else { continue }
        failed.append(seed)
        print(plan.text)
        for violation in report.violations { print("  \(violation.rule): \(violation.text)") }
        let again = try simulation.run(plan)
        if again.hash != report.hash { print("  and a second run of the seed differs") }
        guard options.shrinks else { continue }
        let smaller = try simulation.shrink(plan)
        print("  smaller: \(smaller.plan.text)")
        for violation in smaller.violations { print("    \(violation.rule): \(violation.text)") }
    }
    let took = max(0.001, now() - began)
    print(
        "\(options.seeds) seeds, \(failed.count) failed\(failed.isEmpty ? "" : ": \(failed)"); \(events) records, "
            + "\(Int(seconds)) s of the world in \(Int(took * 1000)) ms: \(Int(Double(options.seeds) * 60 / took)) seeds "
            + "and \(Int(Double(events) / took * 60)) records a minute")
    return failed.isEmpty
}

guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    print("usage: simulation [--seeds N] [--first K] [--seed K] [--log] [--msg ID] [--shrink] [--faults A,B]")
    exit(64)
}
exit(try run(options) ? 0 : 1)
