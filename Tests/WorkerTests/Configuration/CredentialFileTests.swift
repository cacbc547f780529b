// SPDX-License-Identifier: Apache-2.0
import Crypto
import Support
import Testing
import Worker
import YAML

@Suite struct CredentialFileTests {
    /// Discovered at start, not by every handshake (and while it lasts, its end is a gauge).
    @Test(arguments: [(-60, true), (86_400, false)])
    func anEndedCertificateIsRefusedAtStart(until: Int, isRefused: Bool) throws {
        let folder = try TemporaryFolder()
        let minted = try MintedCertificate(validFrom: -7200, validUntil: until)
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(minted.privateKeyPEM, to: "key.pem")
        let credential = Configuration.Credential(
            name: "old", source: .certificate(chainFile: chain, keyFile: key),
            mark: YAMLNode.Mark(source: "carillon.yaml"))
        switch credential.load() {
        case .success: #expect(!isRefused)
        case .failure(let problem):
            #expect(isRefused && problem.description.contains("'old' has ended"), "\(problem.description)")
        }
    }
}
