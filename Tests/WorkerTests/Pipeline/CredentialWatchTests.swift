// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Glibc
import Payload
import Processes
import PushCore
import Support
import Telemetry
import Testing
import YAML

@testable import APNs
@testable import Worker

@Suite(.timeLimit(.minutes(10))) struct CredentialWatchTests {
    @Test func renewedKeyTakesOverAndABrokenFileChangesNothing() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(try PrivateKey.generate().pem(), to: "key.p8")
        let renewed = try PrivateKey.generate().pem()
        let loop = try TestLoop()
        try await loop.run { test in
            let registry = MetricsRegistry()
            let credential = Configuration.Credential(
                name: "default", source: .token(keyFile: file, keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
                mark: YAMLNode.Mark(source: "carillon.yaml"))
            let client = try APNsClient(
                loop: test.loop, endpoint: APNsEndpoint(host: "127.0.0.1", port: 1),
                credential: try credential.load().get(), metrics: APNsMetrics(registry: registry, app: "im"))
            let app = AppContext(
                policy: AppPolicy(id: "im", topic: "com.example.im"), templates: Templates(),
                metrics: AppMetrics(registry, app: "im"), rate: 0, coalesceNanos: 0, sendsDigest: false,
                removals: RemovalBrake.Limits(),
                clients: [
                    AppContext.Client(
                        environment: .production, credential: "default", apns: client, isDefault: true,
                        usesProviderKey: true)
                ])
            var told = 0
            let watch = CredentialWatch(
                loop: test.loop, apps: [(context: app, credentials: [credential])], registry: registry, log: .off
            ) { _, _, _ in told += 1 }
            func look() {
                watch.readFiles()
                while !watch.takeFound() { sched_yield() }
            }
            while !watch.takeFound() { sched_yield() }
            let first = client.credential.identity
            look()
            #expect(client.credential.identity === first && told == 0)
            try folder.write(Array("-----BEGIN PRIVATE KEY-----\nhalf".utf8), to: "key.p8")
            func gauge() -> Bool {
                String(decoding: registry.exposition(), as: UTF8.self).contains(
                    #"carillon_credential_replacement_refused{app="im",credential="default"} 1"#)
            }
            #expect(!gauge() && watch.refusal(of: app, credential: "default") == nil)
            look()
            #expect(client.credential.identity === first && told == 0)
            #expect(gauge() && watch.refusal(of: app, credential: "default")?.contains("key.p8") == true)
            try folder.write(renewed, to: "key.p8")
            look()
            #expect(client.credential.identity !== first && told == 1)
            let second = client.credential.identity
            look()
            #expect(client.credential.identity === second && told == 1)
            #expect(!gauge() && watch.refusal(of: app, credential: "default") == nil)
            // A reload names another file, and again the same.
            let third = try folder.write(try PrivateKey.generate().pem(), to: "third.p8")
            var moved = credential
            moved.source = .token(keyFile: third, keyID: "XYZ123DEFG", teamID: "DEF123GHIJ")
            for _ in 0..<2 {
                watch.apply([moved], of: app)
                look()
            }
            #expect(client.credential.identity !== second && told == 2)
            let reason = APNsReason(bytes: "InvalidProviderToken".utf8)
            #expect(client.credential.refused(client.credential.identity, reason))
            look()
            #expect(gauge())
            #expect(
                watch.refusal(of: app, credential: "default") == "APNs refuses it: InvalidProviderToken")
            client.close()
        }
        await loop.end()
    }
}
