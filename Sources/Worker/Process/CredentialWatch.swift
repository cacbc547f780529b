import APNs
import EventLoop
import Glibc
import Telemetry

/// Looks at the files of credentials now and then, and has a renewed one take over in the running clients.
///
/// Loop-bound. A file that cannot be read or used leaves the old credential in use: half a file, or a key before its
/// certificate, is seen whole at the next look. Costs a `stat` per file and look.
final class CredentialWatch {
    static let everyNanos: UInt64 = 5_000_000_000

    private struct Watched {
        let app: AppContext
        var credential: Configuration.Credential
        var seen: [FileMark]
        /// Why the newest files are not in use; nil: they are.
        var fault: String?
        /// 1 while they are not.
        let gauge: Gauge
    }

    /// What tells one content of a file from the next.
    struct FileMark: Equatable {
        var modifiedNanos: Int64 = 0
        var bytes: Int64 = -1
        var inode: UInt64 = 0

        /// Of nothing, where there is no such file.
        init(_ path: String) {
            var facts = stat()
            guard stat(path, &facts) == 0 else { return }
            modifiedNanos = Int64(facts.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(facts.st_mtim.tv_nsec)
            bytes = Int64(facts.st_size)
            inode = UInt64(facts.st_ino)
        }
    }

    private let loop: Loop
    private let log: Log
    private let used: Counter
    private let refused: Counter
    private let reportExpiry: (APNsCredential, String, String) -> Void
    private let registry: MetricsRegistry
    private var watched: [Watched] = []
    private var timer: LoopTimer?

    /// - Parameter reportExpiry: credential, app and name of one that took over.
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
            look()
            timer?.arm(afterNanos: Self.everyNanos)
        }
        timer?.arm(afterNanos: Self.everyNanos)
    }

    /// Watches the files of one more app.
    func add(_ app: AppContext, _ credentials: [Configuration.Credential]) {
        for credential in credentials {
            let gauge = registry.gauge(
                "carillon_credential_replacement_refused",
                help: "1: a changed credential is not in use, since its files or APNs refuse it; the one before is.",
                labels: [("app", app.id), ("credential", credential.name)], combine: .max)
            gauge.set(0)
            watched.append(Watched(app: app, credential: credential, seen: Self.marks(credential), gauge: gauge))
        }
    }

    /// One look at all files; what changed is taken over.
    func look() {
        for index in watched.indices {
            let marks = Self.marks(watched[index].credential)
            if marks != watched[index].seen {
                watched[index].seen = marks
                watched[index].fault = take(watched[index])
            }
            let (app, name) = (watched[index].app, watched[index].credential.name)
            watched[index].gauge.set(refusal(of: app, credential: name) == nil ? 0 : 1)
        }
    }

    /// A credential set of the same name may lie in other files from now on, or have another key id.
    func apply(_ credentials: [Configuration.Credential], of app: AppContext) {
        for credential in credentials {
            guard
                let index = watched.firstIndex(where: {
                    $0.app === app && $0.credential.name == credential.name && $0.credential.source != credential.source
                })
            else { continue }
            watched[index].credential = credential
            // Taken at the look that follows.
            watched[index].seen = []
        }
    }

    /// Why the newest files of a credential are not in use; nil: they are.
    func refusal(of app: AppContext, credential name: String) -> String? {
        if let fault = watched.first(where: { $0.app === app && $0.credential.name == name })?.fault { return fault }
        let refused = app.clients.lazy.filter { $0.credential == name }.compactMap(\.apns.refusedReplacement).first
        return refused.map { "APNs refuses it: \($0.label)" }
    }

    /// Nil: it is used.
    private func take(_ watched: Watched) -> String? {
        let (app, credential) = (watched.app, watched.credential)
        let fields: KeyValuePairs<StaticString, LogValue> = [
            "app": .string(app.id), "credential": .string(credential.name),
        ]
        switch credential.load() {
        case .failure(let problem):
            refused.add()
            log.error(
                "changed credential files cannot be used; the old credential stays",
                ["app": .string(app.id), "why": .string(problem.description)])
            return problem.description
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
            log.info("credential files changed; the new credential takes over", fields)
            return nil
        }
    }

    private static func marks(_ credential: Configuration.Credential) -> [FileMark] {
        switch credential.source {
        case .token(let keyFile, _, _): [FileMark(keyFile)]
        case .certificate(let chainFile, let keyFile): [FileMark(chainFile), FileMark(keyFile)]
        case .archive(let file, let passwordFile): [FileMark(file)] + (passwordFile.map { [FileMark($0)] } ?? [])
        }
    }
}
