// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Glibc
import JSON
import Processes
import Simulator

/// `carillon simulate`: APNs on this machine, with scripted faults.
struct SimulateCommand: Command {
    static let spec = CommandSpec(
        name: "simulate", summary: "APNs simulator: HTTP/2 over TLS, scripted faults, a ledger of every request",
        details: """
            Behaves as APNs: ALPN h2, a check of the provider token's signature, one stream before the first accepted push, Apple's
            reasons. It prints the values that a worker's configuration needs, and its counters at the end. The ledger gets one JSON
            line per request before the answer is sent. Ctrl-C ends the command.

            A scenario is a JSON file. Its `rules` apply in order to each request that passes Apple's checks. The first matching rule
            decides; a request without a matching rule is accepted. The keys (Config/simulator.md has examples):

            \(ScenarioManual.text)
            exit codes: 0 ended, 1 the address or a file is not usable, 64 bad usage, 78 bad scenario
            """,
        options: [
            .value("listen", "HOST:PORT", "where to listen; port 0 picks a free one", required: true),
            .value("ledger", "FILE", "NDJSON of all requests, appended; required unless --counts-only"),
            .value("scenario", "FILE", "rules of faults, JSON"),
            .value("credentials", "DIR", "key and certificates, made there if missing (a temporary folder)"),
            .value("name", "HOST", "another name or address that the certificate is good for", repeatable: true),
            .flag("counts-only", "no ledger: for measurements"),
            .value("streams", "N", "concurrent streams per connection (1000)"),
            .value("window", "BYTES", "flow-control window of a connection (65535, as APNs)"),
            .flag("sandbox", "answers as the development server does, with apns-unique-id"),
            .flag("no-auth", "asks for no provider token, as with a client certificate"),
            CommandSpec.json,
        ])

    private let host: String
    private let port: UInt16
    private let names: [String]
    private let folder: String?
    private let scenarioPath: String?
    private let isOpen: Bool
    private let isJSON: Bool
    private var configuration = SimulatorConfiguration()

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        let listen = arguments.string("listen") ?? ""
        guard let colon = listen.lastIndex(of: ":"), let port = UInt16(listen[listen.index(after: colon)...]),
            colon != listen.startIndex
        else {
            throw Arguments.UsageError(message: "--listen needs HOST:PORT, such as 127.0.0.1:0; not \"\(listen)\"")
        }
        var host = listen[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        self.host = String(host)
        self.port = port
        names = arguments.strings("name")
        folder = arguments.string("credentials")
        scenarioPath = arguments.string("scenario")
        isOpen = arguments.has("no-auth")
        isJSON = arguments.has("json")
        configuration.host = self.host
        configuration.port = port
        configuration.isDevelopment = arguments.has("sandbox")
        configuration.streamsMax = UInt32(try arguments.int("streams", default: 1000, in: 1...1_000_000))
        configuration.connectionWindowBytes = Int32(
            try arguments.int("window", default: 65_535, in: 65_535...Int(Int32.max)))
        if let ledger = arguments.string("ledger") {
            guard !arguments.has("counts-only") else {
                throw Arguments.UsageError(message: "--counts-only writes no ledger: leave --ledger out")
            }
            configuration.ledger = .file(ledger)
        } else if !arguments.has("counts-only") {
            throw Arguments.UsageError(message: "--ledger is required (or --counts-only for none)")
        }
    }

    func run() async -> ExitCode {
        var configuration = configuration
        if let scenarioPath {
            guard let scenario = scenario(scenarioPath) else { return .configuration }
            configuration.scenario = scenario
        }
        do {
            let signals = try EndSignals()
            let temporary = folder == nil ? try TemporaryFolder() : nil
            let place = Self.absolute(folder ?? temporary?.path ?? ".")
            let credentials = try DemoCredentials(folder: place, hosts: hosts)
            configuration.certificate = credentials.certificate
            configuration.keys = isOpen ? [] : [credentials.providerKey]
            let loop = try Loop(name: "simulator")
            loop.start()
            defer { loop.stop() }
            let service = SimulatorService(loop: loop)
            let bound = try await service.start(configuration)
            Terminal.out(
                asJSON: isJSON, json: json(credentials, bound),
                text: text(credentials, bound, isTemporary: folder == nil))
            await signals.first()
            let counters = await service.counters
            let fault = await service.ledgerFault
            await service.stop()
            Terminal.out(asJSON: isJSON, json: json(counters), text: text(counters))
            guard let fault else { return withExtendedLifetime(temporary) { .done } }
            Terminal.err("carillon simulate: \(fault)\n")
            return .failed
        } catch {
            Terminal.err("carillon simulate: \(error)\n")
            return .failed
        }
    }

    private func scenario(_ path: String) -> Scenario? {
        do {
            let reader = try LineReader(path: path)
            var bytes: [UInt8] = []
            while let line = try reader.next() { bytes += line + [0x0A] }
            return try Scenario(json: bytes)
        } catch let fault as ScenarioFault {
            for problem in fault.problems { Terminal.err("\(path): \(problem)\n") }
        } catch let fault as LineReader.Fault {
            Terminal.err("carillon simulate: \(fault.message)\n")
        } catch {
            Terminal.err("\(path): \(error)\n")
        }
        return nil
    }

    /// Printed paths are pasted into files that other processes read from other folders.
    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
        defer { free(here) }
        return String(cString: here) + "/" + path
    }

    private static let wildcards = ["0.0.0.0", "::"]

    private var hosts: [String] {
        var hosts = ["localhost", "127.0.0.1", "::1"]
        for name in names + (Self.wildcards.contains(host) ? [] : [host]) where !hosts.contains(name) {
            hosts.append(name)
        }
        return hosts
    }

    /// The URL for clients on this machine.
    private func endpoint(_ port: UInt16) -> String {
        let name = Self.wildcards.contains(host) ? (names.first ?? "127.0.0.1") : host
        return "https://\(name.contains(":") ? "[\(name)]" : name):\(port)"
    }

    private func text(_ credentials: DemoCredentials, _ port: UInt16, isTemporary: Bool) -> TerminalText {
        let credentialLine: TerminalText =
            isOpen
            ? "# no provider token is asked for\n"
            : """
                credentials:
                  key_file: \(credentials.keyFile)
                  key_id: \(DemoCredentials.keyID)
                  team_id: \(DemoCredentials.teamID)

            """
        return """
            \(Style.bold("listening on \(host):\(port)"))
            \(Style.dim("# into the app's entry of the configuration:"))
                endpoint: \(endpoint(port))
                ca_file: \(credentials.authorityFile)
            \(credentialLine)\(isTemporary ? Style.dim("# that folder is removed at the end; --credentials DIR keeps one\n") : "" as TerminalText)
            """
    }

    private func json(_ credentials: DemoCredentials, _ port: UInt16) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("host", host)
        writer.member("port", Int64(port))
        writer.member("endpoint", endpoint(port))
        writer.member("ca_file", credentials.authorityFile)
        writer.member("key_file", credentials.keyFile)
        writer.member("key_id", DemoCredentials.keyID)
        writer.member("team_id", DemoCredentials.teamID)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    private func text(_ counters: SimulatorCounters) -> TerminalText {
        var text: TerminalText = "\n\(Style.bold("\(counters.requests) requests")), \(counters.accepted) accepted, "
        text += "\(counters.connections) connections, at most \(counters.streamsPeak) streams at once\n"
        for (reason, count) in counters.rejected.sorted(by: { $0.key < $1.key }) {
            text += "  rejected  \(reason)  \(count)\n"
        }
        for (kind, count) in counters.faults.sorted(by: { $0.key < $1.key }) {
            text += "  fault     \(kind)  \(count)\n"
        }
        return text
    }

    private func json(_ counters: SimulatorCounters) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("requests", Int64(counters.requests))
        writer.member("accepted", Int64(counters.accepted))
        writer.member("connections", Int64(counters.connections))
        writer.member("streams_peak", Int64(counters.streamsPeak))
        writer.member("header_table_peak", Int64(counters.headerTablePeak))
        writer.member("provider_tokens", Int64(counters.tokens))
        writer.key("rejected")
        writer.counts(counters.rejected)
        writer.key("faults")
        writer.counts(counters.faults)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}

extension JSONWriter {
    /// An object of numbers, by name.
    mutating func counts(_ counts: [String: Int]) {
        beginObject()
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
            key(escaping: name)
            int(count)
        }
        endObject()
    }
}
