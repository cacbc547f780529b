// SPDX-License-Identifier: Apache-2.0
import Digits
import Processes
import Simulator

/// The APNs simulator as a process of its own. It only counts.
struct BenchSimulator {
    let process: ServerProcess
    let port: UInt16

    var endpoint: String { "https://localhost:\(port)" }

    init(credentials: String, _ arguments: [String]) throws {
        let own = ["simulate", "--listen", "127.0.0.1:0", "--counts-only", "--json", "--credentials", credentials]
        process = try ServerProcess(try BenchWorker.ownPath(), own + arguments, readyLine: "\"endpoint\"")
        port = try process.number(after: "\"port\":")
    }

    /// Ends it.
    ///
    /// - Returns: the pushes that it accepted.
    func stop() -> Int {
        process.stop()
        return (try? process.number(after: "\"accepted\":")) ?? 0
    }
}

extension ServerProcess {
    /// The first number after a text in the latest output.
    func number<Number: FixedWidthInteger>(after text: String) throws(SetupFault) -> Number {
        let output = takeOutput()
        let pieces = output.split(separator: text, maxSplits: 1, omittingEmptySubsequences: false).dropFirst()
        guard let digits = pieces.first?.prefix(while: \.isNumber), let number = Number(digits) else {
            throw SetupFault("no number after \(text): \(output.suffix(600))")
        }
        return number
    }
}
