// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import PushCore
import Worker

/// The questions of `check` to APNs for an app: can it be reached, and with `--probe`, does it accept the credentials.
///
/// Covers the app's own environment, the other one if its endpoint is configured, and each credential set.
struct APNsCheck {
    let app: Configuration.App
    /// Sends a push to a token that no device has.
    let probes: Bool

    func findings() async -> [Finding] {
        var findings: [Finding] = []
        for environment in environments {
            for set in app.credentials {
                guard case .success(let credential) = set.load() else { continue }
                findings += await connect(to: environment, set.name, credential)
            }
        }
        return findings
    }

    private var environments: [APNsEnvironment] {
        let other: APNsEnvironment = app.environment == .production ? .sandbox : .production
        let isConfigured = app.endpoints[other] != Configuration.Endpoints()[other]
        return isConfigured && app.endpoints[other] != app.endpoints[app.environment]
            ? [app.environment, other] : [app.environment]
    }

    private func connect(
        to environment: APNsEnvironment, _ name: String, _ credential: APNsCredential
    ) async -> [Finding] {
        let endpoint = app.endpoints[environment]
        let place = "\(endpoint.host):\(endpoint.port)"
        let who = "app \(app.policy.id), \(environment.rawValue), credential \(name)"
        guard let client = try? CommandAPNsClient() else { return [Finding(.fail, "apns", place, "no event loop")] }
        var findings: [Finding] = []
        var limits = app.limits.client
        // The first answer is the result, even if APNs asks for a retry.
        limits.holdNanos = 0
        switch await client.open(endpoint: endpoint, credential: credential, limits: limits) {
        case .ready(let milliseconds):
            findings.append(Finding(.ok, "apns", place, "\(who): TLS and HTTP/2 in \(milliseconds) ms"))
            if probes {
                let topics = app.policy.allowedTopics ?? [app.policy.topic]
                for topic in topics {
                    let answer = await client.send(Self.probe(topic))
                    findings.append(judge(answer, topic, environment, who, place))
                    if case .credentialRefused = answer { break }
                }
                if let ahead = await client.clockAheadSeconds {
                    findings += Checks.clock(aheadSeconds: ahead, of: "APNs", place)
                }
            }
        case .failed(let cause):
            findings.append(
                Finding(
                    .fail, "apns", place,
                    "\(who): \(cause); is the outgoing port open (443, else 2197), and is ca_file right?"))
        }
        await client.close()
        return findings
    }

    /// A token of zeros belongs to no device. It is not stored or shown anywhere.
    private static func probe(_ topic: String) -> Push? {
        guard let token = DeviceToken(String(repeating: "0", count: 64)),
            let headers = try? PushHeaders(
                topic: topic, pushType: .background, priority: .considerate, expirationSeconds: 0)
        else { return nil }
        return Push(
            tag: 1, token: token, headers: headers, id: PushID.random(),
            payload: Array(#"{"aps":{"content-available":1}}"#.utf8), expiresAtMs: Loop.wallMs() + 10_000)
    }

    private func judge(
        _ answer: CommandAPNsClient.Answer, _ topic: String, _ environment: APNsEnvironment, _ who: String,
        _ place: String
    ) -> Finding {
        func finding(_ grade: Finding.Grade, _ text: String) -> Finding {
            Finding(grade, "probe", place, "\(who), topic \(topic): \(text)")
        }
        switch answer {
        case .ended(.rejected(let status, let reason, _), _, _, _),
            .ended(.deferred(let status, let reason, _), _, _, _),
            .credentialRefused(.answer(let status, let reason)):
            let word = "\(status)\(reason.text.isEmpty ? "" : " ")\(reason.text)"
            let verdict = ProbeVerdict(status: status, reason: reason)
            return finding(
                verdict == .taken ? .ok : verdict == .passing ? .warn : .fail, Self.text(verdict, word, environment))
        case .credentialRefused(let farewell): return finding(.fail, "the credential is refused: \(farewell)")
        case .ended(.accepted, _, _, _):
            return finding(.warn, "took a push to a token that no device has: is this APNs?")
        case .ended(_, _, _, let trouble): return finding(.fail, "no answer\(trouble.map { ": \($0)" } ?? "")")
        case .notSent(let why): return finding(.fail, why)
        }
    }

    private static func text(_ verdict: ProbeVerdict, _ word: String, _ environment: APNsEnvironment) -> String {
        let other = environment == .production ? "sandbox" : "production"
        switch verdict {
        case .taken: return "\(word): the credential is accepted; the device token is missing, as expected"
        case .credential:
            return
                "\(word): the credential is refused: are key_id and team_id those of this file, is it not revoked, and "
                + "is the clock right?"
        case .environment: return "\(word): the credential is for the other environment: set environment: \(other)"
        case .topic: return "\(word): the credential may not push to this topic: see the app's bundle id"
        case .passing: return "\(word): APNs is busy: try again"
        case .other: return word
        }
    }
}
