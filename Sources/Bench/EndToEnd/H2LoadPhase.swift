// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import EventLoop
import LocalServers
import Processes
import Simulator

/// nghttp2's load generator sends the same requests to the same simulator. Its cost per request is the unit of
/// comparison.
struct H2LoadPhase {
    struct Outcome: Sendable {
        var requests = 0
        var perSecond: Double = 0
        var micros: Double = 0
        var simulatorMicros: Double = 0
    }

    static var isPossible: Bool { FinishedProcess.isOnPath("h2load") }

    /// The requests, and their destination.
    struct Requests {
        var port: UInt16
        var users: Int
        var count: Int
        var connections = 1
        var streams = 1000
        var credentials: DemoCredentials
        var folder: TemporaryFolder
    }

    static func run(_ bench: BenchServers) throws -> Outcome {
        let before = bench.simulatorNanos()
        var outcome = try run(
            Requests(
                port: bench.cluster.simulatorPort, users: min(bench.settings.users, 50_000),
                // The few messages of `--unsent` would be too short to measure.
                count: bench.settings.isUnsent ? 4 * bench.settings.events : bench.settings.events,
                credentials: bench.cluster.credentials, folder: bench.cluster.folder))
        outcome.simulatorMicros = Double(bench.simulatorNanos() &- before) / 1000 / Double(outcome.requests)
        return outcome
    }

    static func run(_ requests: Requests) throws -> Outcome {
        let process = try FinishedProcess.run(
            "h2load",
            [
                "-c", String(requests.connections), "-m", String(requests.streams), "-t", "1",
                "-n", String(requests.count), "-i", try addresses(requests),
                "-d", try requests.folder.write(Array(BenchTraffic.samplePayload.utf8), to: "payload.json"),
            ] + headers(requests.credentials).flatMap { ["-H", $0] })
        guard process.exitCode == 0 else { throw SetupFault("h2load: \(process.output.suffix(600))") }
        let accepted = accepted(in: process.output)
        // Requests sent before the stream limit arrives may be refused, up to a hundred per connection (nghttp2's
        // initial assumption). h2load does not retry them.
        guard accepted >= requests.count - max(requests.count / 100, requests.connections * 100) else {
            let lines = process.output.split(separator: "\n")
            let told = lines.filter { $0.hasPrefix("requests:") || $0.hasPrefix("status codes:") }
            throw SetupFault("h2load: \(accepted) of \(requests.count) were accepted: \(told.joined(separator: "; "))")
        }
        return Outcome(
            requests: accepted, perSecond: rate(in: process.output),
            micros: process.cpuSeconds * 1e6 / Double(accepted))
    }

    private static func addresses(_ requests: Requests) throws(SetupFault) -> String {
        let traffic = BenchTraffic(users: requests.users, app: "im", topic: BenchPushes.topic)
        var text = ""
        for user in 0..<traffic.users {
            text += "https://localhost:\(requests.port)/3/device/\(traffic.token(user))\n"
        }
        return try requests.folder.write(Array(text.utf8), to: "addresses.txt")
    }

    /// The same headers as the worker's client sends.
    private static func headers(_ credentials: DemoCredentials) throws -> [String] {
        let nowMs = Loop.wallMs()
        let head = Base64URL.encode(Array(#"{"alg":"ES256","kid":"\#(DemoCredentials.keyID)"}"#.utf8))
        let claims = Base64URL.encode(Array(#"{"iss":"\#(DemoCredentials.teamID)","iat":\#(nowMs / 1000)}"#.utf8))
        let signed = head + [UInt8(ascii: ".")] + claims
        let token = signed + [UInt8(ascii: ".")] + Base64URL.encode(try credentials.key.signES256(signed))
        return [
            "authorization: bearer \(String(decoding: token, as: UTF8.self))", "apns-topic: \(BenchPushes.topic)",
            "apns-push-type: alert", "apns-priority: 10", "apns-expiration: \(nowMs / 1000 + 86_400)",
            "apns-id: 5f0c1e9a-8f65-4c3e-9d3e-2f8a6b1c7d10", "apns-collapse-id: 3b0c44298fc1c149afbf4c8996fb9242",
        ]
    }

    /// `status codes: 200000 2xx, 0 3xx, …`
    static func accepted(in output: String) -> Int {
        number(after: "status codes: ", in: output).map { Int($0) } ?? 0
    }

    /// `finished in 1.99s, 100501.23 req/s, …`
    static func rate(in output: String) -> Double {
        guard let line = output.split(separator: "\n").first(where: { $0.hasPrefix("finished in ") }) else { return 0 }
        return line.split(separator: ", ").dropFirst().first.flatMap { number(after: "", in: String($0)) } ?? 0
    }

    private static func number(after mark: String, in text: String) -> Double? {
        for line in text.split(separator: "\n") where line.hasPrefix(mark) {
            return Double(line.dropFirst(mark.count).prefix { $0.isNumber || $0 == "." })
        }
        return nil
    }
}
