// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import EventLoop
import Glibc
import HTTP2
import JSON
import Simulator
import Testing

@Suite(.timeLimit(.minutes(10))) struct LedgerTests {
    @Test func everyRequestLeavesOneLineBeforeItsAnswer() async throws {
        let folder = try Folder()
        let path = folder.path + "/ledger.ndjson"
        var configuration = SimulatorConfiguration()
        configuration.ledger = .file(path)
        try await withSimulator(configuration) { _, client, _ in
            let pretty = Array("{\n \"aps\": {\"alert\": \"一\\n\"}\r\n}".utf8)
            _ = await client.send(TestRequest(token: "aa01").with(body: pretty).with(.collapseID, "a\"b\u{E9}"))
            // The answer is here, so its line must be.
            let first = try folder.lines("ledger.ndjson")
            #expect(first.count == 1)
            #expect(first.first?["payload"]?["aps"]?["alert"]?.string == "一\n")
            #expect(first.first?["headers"]?["apns-collapse-id"]?.string == "a\"b\u{E9}")
            #expect(first.first?["token"]?.string == "aa01")
            #expect(first.first?["answered"]?.bool == true)
            #expect(first.first?["status"]?.int == 200)
            #expect(first.first?["bytes"]?.int == Int64(pretty.count))
            _ = await client.send(TestRequest(token: "aa02").with(body: [0x7B, 0xFF, 0x0A]))
            _ = await client.send((0..<300).map { TestRequest(token: String(0x1000 + $0, radix: 16)) })
            let all = try folder.lines("ledger.ndjson")
            #expect(all.count == 302)
            #expect(all[1]["reason"]?.string == "PayloadEmpty")
            #expect(all[1]["payload"]?.string?.isEmpty == false)
        }
    }

    @Test func aLedgerThatCannotBeWrittenIsNamedAtStart() async throws {
        let loop = try Loop(name: "ledger")
        loop.start()
        var configuration = SimulatorConfiguration()
        configuration.ledger = .file("/nonexistent/ledger.ndjson")
        let service = SimulatorService(loop: loop)
        await #expect(throws: SimulatorFault.self) { try await service.start(configuration) }
        loop.stop()
    }

    @Test func noAnswerLeavesWithoutItsLine() async throws {
        var configuration = SimulatorConfiguration()
        // Every write to it fails with "no space left".
        configuration.ledger = .file("/dev/full")
        try await withSimulator(configuration) { service, client, _ in
            let answer = await client.send(TestRequest())
            #expect(answer.end == .lost)
            #expect(await service.ledgerFault != nil)
        }
    }

    @Test func credentialsAreKeptAndReadableByTheirOwnerOnly() throws {
        let folder = try Folder()
        let place = folder.path + "/secrets"
        let first = try DemoCredentials(folder: place)
        let second = try DemoCredentials(folder: place)
        #expect(first.certificate.authorityPEM == second.certificate.authorityPEM)
        let signature = try first.key.signES256([1])
        #expect(second.providerKey.publicKey.verifyES256(signature, of: [1]))
        for file in [first.keyFile, place + "/server-key.pem"] {
            var facts = stat()
            #expect(stat(file, &facts) == 0)
            #expect(facts.st_mode & 0o777 == 0o600)
        }
        unlink(place + "/ca.pem")
        let third = try DemoCredentials(folder: place)
        #expect(third.certificate.authorityPEM != first.certificate.authorityPEM)
        #expect(throws: SimulatorFault.self) { try DemoCredentials(folder: "/nonexistent/deep") }
    }
}

/// A temporary folder, removed with its files.
private final class Folder {
    let path: String

    init() throws {
        path = "/tmp/carillon-" + Hex.string(try RandomBytes.make(8))
        mkdir(path, 0o700)
    }

    deinit {
        for folder in [path + "/secrets", path] {
            for name in ["ledger.ndjson", "AuthKey_CARILLON01.p8", "ca.pem", "server.pem", "server-key.pem", "hosts"] {
                unlink(folder + "/" + name)
            }
            rmdir(folder)
        }
    }

    func lines(_ name: String) throws -> [JSONTree] {
        let fd = open(path + "/" + name, O_RDONLY)
        defer { close(fd) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = max(0, read(fd, &bytes, bytes.count))
        return try bytes.prefix(count).split(separator: 0x0A).map { try JSONTree(parsing: Array($0)) }
    }
}
