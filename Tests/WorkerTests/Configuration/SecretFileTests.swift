// SPDX-License-Identifier: Apache-2.0
import Glibc
import Support
import Testing

@testable import Worker

/// Files of secrets that others can read.
struct SecretFileTests {
    @Test(
        arguments: [
            (0o600, nil), (0o400, nil), (0o640, "its group"), (0o604, "every user"), (0o644, "every user"),
            (0o620, "its group"),
        ] as [(mode_t, String?)])
    func aFileThatOthersCanOpenIsReported(mode: mode_t, who: String?) throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Array("0123456789abcdef\n".utf8), to: "secret")
        #expect(chmod(path, mode) == 0)
        let text = ConfigurationProblemTests.good + "http: {token_file: \(path)}\n"
        let configuration = try Configuration.read(Array(text.utf8), source: "f").get()
        #expect(configuration.secretFiles.map(\.path) == ["k.p8", path])
        let told = configuration.secretFiles.compactMap(\.exposure)
        #expect(told.count == (who == nil ? 0 : 1))
        if let who, let problem = told.first {
            #expect(problem.text.contains(who) && problem.text.contains("chmod 600"), "\(problem)")
            #expect(problem.line == 7)
        }
    }

    @Test func everyFileOfASecretIsKnown() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Array("me:0123456789abcdef".utf8), to: "secret")
        let text = """
            kafka:
              brokers: localhost:9092
              options: {security.protocol: ssl, ssl.certificate.location: \(path), ssl.key.location: \(path)4}
              secret_files: {sasl.password: \(path)}
            redis: {url: "redis://localhost", password_file: \(path)2}
            apps:
              - id: im
                topic: com.example.im
                proxy: http://localhost:3128
                proxy_password_file: \(path)3
                credentials:
                  a: {certificate_file: a.p12, password_file: a.pw}
                  b: {certificate_file: b.pem, key_file: b.key}
            """
        for end in ["2", "3", "4"] { try folder.write(Array("me:0123456789abcdef".utf8), to: "secret" + end) }
        let configuration = try Configuration.read(Array(text.utf8), source: "f").get()
        #expect(
            Set(configuration.secretFiles.map(\.path))
                == [path + "4", path, path + "2", path + "3", "a.p12", "a.pw", "b.key"])
    }
}
