// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Telemetry

/// Checks the credential files at intervals, and gives changed credentials to the running clients.
///
/// Loop-bound; the files are read on a thread of their own (`CredentialReading`). A file that cannot be read or used leaves
/// the old credential in use: half a file, or a key before its certificate, is seen whole at the next look. Costs a `stat`
/// per file and look. While a credential cannot be used at all, its files are read at each look.
final class CredentialWatch {
    static let everyNanos: UInt64 = 5_000_000_000
    /// Between two questions whether a reading is done.
    private static let askNanos: UInt64 = 20_000_000
    /// A disk that does not answer for so long is reported.
    private static let patienceNanos: UInt64 = 10_000_000_000

    private struct Watched {
        let app: AppContext
        var credential: Configuration.Credential
        /// Nil if not known yet; then the next look applies its results only if `isMoved`.
        var seen: [FileMark]?
        /// A reload named other files.
        var isMoved = false
        /// The reason why the newest files are not in use; nil if they are.
        var fault: String?
        /// 1 while the newest files are not in use.
        let gauge: Gauge
    }

    private let loop: Loop
    private let log: Log
    private let used: Counter
    private let refused: Counter
    private let reportExpiry: (APNsCredential, String, String) -> Void
    private let registry: MetricsRegistry
    private var watched: [Watched] = []
    private let reading = CredentialReading()
    private var begunNanos: UInt64 = 0
    private var isLate = false
    private var timer: LoopTimer?

    /// - Parameter reportExpiry: receives the credential, app and name after a change.
    init(
        loop: Loop, apps: [(context: AppContext, credentials: [Configuration.Credential])], registry: MetricsRegistry,
        log: Log, reportExpiry: @escaping (APNsCredential, String, String) -> Void
    ) {
        self.loop = loop
        self.log = log
        self.reportExpiry = reportExpiry
        func reloads(_ result: String) -> Counter {
            registry.counter(
                "carillon_credential_reloads_total", help: "Changed credential files by whether they could be used",
                labels: [("result", result)])
        }
        used = reloads("used")
        refused = reloads("refused")
        self.registry = registry
        for app in apps { add(app.context, app.credentials) }
        timer = LoopTimer(loop: loop) { [unowned self] in
            if reading.isBusy { takeFound() } else { readFiles() }
        }
        readFiles()
    }

    /// Watches the files of another app.
    func add(_ app: AppContext, _ credentials: [Configuration.Credential]) {
        for credential in credentials {
            let gauge = registry.gauge(
                "carillon_credential_replacement_refused",
                help: "1: a changed credential is not in use, since its files or APNs refuse it; the one before is.",
                labels: [("app", app.id), ("credential", credential.name)], combine: .max)
            gauge.set(0)
            watched.append(Watched(app: app, credential: credential, seen: nil, gauge: gauge))
        }
    }

    /// Begins a look at all files, unless one is under way; `takeFound` ends it.
    func readFiles() {
        guard !reading.isBusy else { return }
        let questions = watched.map {
            CredentialReading.Question(
                credential: $0.credential, seen: $0.seen, isMoved: $0.isMoved || Self.isLacking($0))
        }
        begunNanos = loop.nowNanos
        timer?.arm(afterNanos: reading.begin(questions, on: loop) ? Self.askNanos : Self.everyNanos)
    }

    /// Applies the results of a look.
    ///
    /// - Returns: false where it is still under way.
    @discardableResult
    func takeFound() -> Bool {
        guard let found = reading.takeFound() else {
            warnOfDisk()
            timer?.arm(afterNanos: Self.askNanos)
            return false
        }
        isLate = false
        for (index, found) in found.enumerated() where watched.indices.contains(index) {
            // A reload may have named other files in the time of the look; the next look reads them.
            guard watched[index].credential.source == found.source else { continue }
            watched[index].seen = found.marks
            watched[index].isMoved = false
            if let loaded = found.loaded { watched[index].fault = take(loaded, watched[index]) }
        }
        for index in watched.indices {
            let (app, name) = (watched[index].app, watched[index].credential.name)
            watched[index].gauge.set(refusal(of: app, credential: name) == nil ? 0 : 1)
        }
        timer?.arm(afterNanos: Self.everyNanos)
        return true
    }

    private func warnOfDisk() {
        guard !isLate, loop.nowNanos &- begunNanos >= Self.patienceNanos else { return }
        isLate = true
        log.warning("the files of credentials cannot be read: their disk does not answer; the credentials in use stay")
    }

    /// A credential set of the same name may have other files from now on, or another key id.
    func apply(_ credentials: [Configuration.Credential], of app: AppContext) {
        for credential in credentials {
            guard
                let index = watched.firstIndex(where: {
                    $0.app === app && $0.credential.name == credential.name && $0.credential.source != credential.source
                })
            else { continue }
            watched[index].credential = credential
            // Applied at the next check.
            watched[index].isMoved = true
        }
    }

    /// The reason why a credential's newest files are not in use; nil if they are.
    func refusal(of app: AppContext, credential name: String) -> String? {
        if let fault = watched.first(where: { $0.app === app && $0.credential.name == name })?.fault { return fault }
        let refused = app.clients.lazy.filter { $0.credential == name }.compactMap(\.apns.refusedReplacement).first
        return refused.map { "APNs refuses it: \($0.label)" }
    }

    /// No credential of the set is in use.
    private static func isLacking(_ watched: Watched) -> Bool {
        watched.app.clients.contains { $0.credential == watched.credential.name && $0.apns.lacksCredential }
    }

    /// - Returns: nil if it is used.
    private func take(_ loaded: Result<APNsCredential, Problem>, _ watched: Watched) -> String? {
        let (app, credential) = (watched.app, watched.credential)
        let fields: KeyValuePairs<StaticString, LogValue> = [
            "app": .string(app.id), "credential": .string(credential.name),
        ]
        switch loaded {
        case .failure(let problem):
            let why = problem.description
            // The files of a lacking credential are read again and again.
            if why == watched.fault, Self.isLacking(watched) { return why }
            refused.add()
            log.error(
                Self.isLacking(watched)
                    ? "a credential cannot be used: the pushes of its app wait"
                    : "changed credential files cannot be used; the old credential stays",
                ["app": .string(app.id), "why": .string(why)])
            return why
        case .success(let loaded):
            for client in app.clients where client.credential == credential.name {
                do throws(APNsFault) {
                    try client.apns.replaceCredential(loaded)
                } catch {
                    refused.add()
                    log.error(
                        "a changed credential cannot be used; the old one stays",
                        ["app": .string(app.id), "why": .string(error.description)])
                    return error.description
                }
            }
            used.add()
            reportExpiry(loaded, app.id, credential.name)
            log.info("credential files changed; the new credential is being tried", fields)
            return nil
        }
    }
}
