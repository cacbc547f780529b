// SPDX-License-Identifier: Apache-2.0
import Glibc
import Simulation

func now() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Writes a line to standard error.
func complain(_ line: String) { _ = write(2, line + "\n", line.utf8.count + 1) }

/// A line on standard error every ten seconds.
struct Progress {
    let seeds: Int
    private var nextSeconds = now() + 10

    init(seeds: Int) { self.seeds = seeds }

    mutating func tell(_ total: Total, seed: UInt64) {
        guard now() >= nextSeconds else { return }
        nextSeconds = now() + 10
        complain(
            "seed \(seed): \(total.seeds) of \(seeds), \(total.failed.count) failed, \(total.seedsPerMinute) a minute")
    }
}

/// Begins again with one order of hashed collections for all processes, so that a seed has one log.
func fixHashing() {
    let name = "SWIFT_DETERMINISTIC_HASHING"
    if getenv(name) != nil { return }
    setenv(name, "1", 1)
    execv("/proc/self/exe", CommandLine.unsafeArgv)
    complain("cannot begin again with \(name)=1: seeds may differ from process to process")
}

func run(_ options: Options) throws -> Total {
    var template = Array("/tmp/simulation-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { exit(70) }
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let simulation = try Simulation(folder: folder)
    defer {
        unlink(folder + "/AuthKey_ABC123DEFG.p8")
        unlink(folder + "/authority.pem")
        unlink(folder + "/templates.yaml")
        rmdir(folder)
    }
    let printer = Printer(isJSON: options.isJSON)
    let began = now()
    var (total, progress) = (Total(), Progress(seeds: options.seeds))
    for seed in options.first..<options.first + UInt64(options.seeds) where !options.skipped.contains(seed) {
        progress.tell(total, seed: seed)
        let plan = Plan(seed: seed, faults: options.faults, added: options.kinds)
        let report = try simulation.run(plan, keepsLog: options.keepsLog, message: options.message)
        for line in report.lines { print(line) }
        if options.keepsLog { print("hash \(String(report.hash, radix: 16))") }
        total.add(report)
        total.seconds = max(0.001, now() - began)
        guard !report.violations.isEmpty else { continue }
        let again = try simulation.run(plan)
        printer.failed(
            report, isRepeatable: again.hash == report.hash,
            smaller: options.shrinks ? try simulation.shrink(plan) : nil)
        fflush(nil)
        if options.stops { break }
    }
    if options.printsCoverage { printer.coverage(total.coverage) }
    printer.summary(total)
    return total
}

fixHashing()
guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    complain(Options.help)
    exit(64)
}
if options.wantsHelp {
    print(Options.help)
    exit(0)
}
exit(try run(options).failed.isEmpty ? 0 : 1)
