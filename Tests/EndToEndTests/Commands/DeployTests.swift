// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import Glibc
import Processes
import Testing

/// What `deploy/` ships is what `carillon` takes.
struct DeployTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// As the image and the unit start it: in the folder of the configuration, whose paths are relative to it.
    @Test func theShippedConfigurationStartsOnceItsKeyLiesThere() throws {
        let folder = try TemporaryFolder()
        let install = Self.root.appendingPathComponent("deploy/install-config").path
        let done = try FinishedProcess.run(install, [folder.path, "0.0.0.0:9464"])
        #expect(done.exitCode == 0)
        #expect(try check("carillon.yaml", in: folder).contains("AuthKey_ABC123DEFG.p8: No such file"))
        mkdir(folder.file("secrets"), 0o700)
        chmod(try folder.write(try PrivateKey.generate().pem(), to: "secrets/AuthKey_ABC123DEFG.p8"), 0o600)
        let told = try check("carillon.yaml", in: folder)
        #expect(told.contains("0.0.0.0:9464") && told.contains("0 problems, 1 warning"), "\(told)")
    }

    @Test func theConfigurationOfComposeIsWell() throws {
        let folder = try TemporaryFolder()
        for (from, to) in [
            ("deploy/compose/carillon.yaml", "compose.yaml"), ("Config/templates.yaml", "templates.yaml"),
        ] {
            let text = try String(contentsOf: Self.root.appendingPathComponent(from), encoding: .utf8)
            try folder.write(Array(text.replacingOccurrences(of: "/var/lib/carillon", with: folder.path).utf8), to: to)
        }
        chmod(try folder.write(try PrivateKey.generate().pem(), to: "AuthKey_CARILLON01.p8"), 0o600)
        let told = try check("compose.yaml", in: folder)
        #expect(told.contains("waived: plain_redis") && told.contains("0 problems"), "\(told)")
    }

    private func check(_ name: String, in folder: TemporaryFolder) throws -> String {
        let command = "cd \(folder.path) && \(CommandRun.binary.path) check --offline --config \(name) >told 2>&1"
        _ = try FinishedProcess.run("sh", ["-c", command])
        return try String(contentsOfFile: folder.file("told"), encoding: .utf8)
    }
}
