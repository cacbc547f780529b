// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Foundation
import Telemetry

/// Sends some pushes to one device and prints what became of each.
///
///     apns-send --endpoint https://api.push.apple.com --key AuthKey_ABC123DEFG.p8 --key-id ABC123DEFG --team-id DEF123GHIJ \
///         --topic com.example.im --token HEX --text Hello [--text Again] [--ca-file FILE]
@main
struct ApnsSend {
    static func main() async {
        do {
            let options = try Options(CommandLine.arguments.dropFirst())
            let sender = try Sender()
            do {
                let isAccepted = try await sender.send(options)
                await sender.close()
                exit(isAccepted ? 0 : 1)
            } catch {
                // The client goes on its loop, whatever has happened.
                await sender.close()
                throw error
            }
        } catch {
            FileHandle.standardError.write(Data("apns-send: \(error)\n".utf8))
            exit(64)
        }
    }
}

/// An actor on a loop of its own: all that it does, and all that the client calls back, happens on the loop's thread.
actor Sender {
    private nonisolated let loop: Loop
    private let outcomes = Outcomes()
    private var client: APNsClient?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws {
        loop = try Loop(name: "apns")
        loop.start()
    }

    /// True: APNs accepted every push.
    func send(_ options: Options) async throws -> Bool {
        let client = try APNsClient(
            loop: loop, endpoint: try APNsEndpoint(url: options.endpoint, caFile: options.caFile),
            credential: try .token(keyFile: options.key, keyID: options.keyID, teamID: options.teamID),
            metrics: APNsMetrics(registry: MetricsRegistry(), app: options.topic), delegate: outcomes)
        self.client = client
        client.start()
        // What many pushes share is made once. No attempt begins a minute from now, and APNs stores nothing for longer.
        let untilMs = Loop.wallMs() + 60_000
        let headers = try PushHeaders(topic: options.topic, pushType: .alert, expirationSeconds: untilMs / 1000)
        guard let token = DeviceToken(options.token) else { throw Fault("the token must be hexadecimal") }
        var isAccepted = true
        // One after the other: two pushes in flight to one device may arrive in any order.
        for (index, text) in options.texts.enumerated() {
            let payload = try JSONEncoder().encode(["aps": ["alert": text]])
            let push = Push(
                tag: UInt64(index), token: token, headers: headers,
                id: PushID(high: .random(in: 0 ... .max), low: .random(in: 0 ... .max)), payload: Array(payload),
                expiresAtMs: untilMs)
            let outcome = try await outcome(of: push, by: client)
            print("\(text): \(outcome)")
            if case .accepted = outcome { continue }
            isAccepted = false
        }
        return isAccepted
    }

    private func outcome(of push: Push, by client: APNsClient) async throws -> PushOutcome {
        switch client.send(push) {
        case .taken, .held: break
        case .unfit(let fault): throw Fault("such a push cannot be accepted: \(fault)")
        case .full, .closed: throw Fault("the client accepts no push")
        }
        // An outcome comes for every push that was taken, in a later turn of the loop.
        return await withCheckedContinuation { outcomes.waiting[push.tag] = $0 }
    }

    nonisolated func close() async {
        await closeClient()
        loop.stop()
    }

    private func closeClient() {
        client?.close()
        client = nil
    }
}

/// Hears what became of pushes, on the loop's thread.
final class Outcomes: APNsClientDelegate {
    var waiting: [UInt64: CheckedContinuation<PushOutcome, Never>] = [:]

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        waiting.removeValue(forKey: tag)?.resume(returning: outcome)
    }

    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {
        // What one would log or count; the client goes on trying by itself.
        FileHandle.standardError.write(Data("apns-send: \(event)\n".utf8))
    }
}
