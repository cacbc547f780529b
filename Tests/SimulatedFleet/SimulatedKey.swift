// SPDX-License-Identifier: Apache-2.0
package import Crypto
import Glibc
package import Worker

/// The provider key of all worlds: signatures, and so all bytes, are the same in each process.
package struct SimulatedKey {
    package static let keyID = "ABC123DEFG"
    /// Its names at APNs.
    package static let keyIDs = [keyID, "ABC123DEFH"]
    package static let teamID = "DEF123GHIJ"
    package let key: PrivateKey
    package let path: String
    /// A certificate authority: the links have no TLS, and the system's own list takes long to read.
    package let authorityPath: String
    /// The texts of a world's apps.
    package let templatesPath: String

    /// A key for these tests only.
    private static let pem = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgB9l98e2aY40Ue/Tu
        5SQhNKhN+TEgNvqu930lD5o3P6ihRANCAARqu/0dFd0IpFnxp49FUKed5kiBnoM4
        j9JHW4+18s0bH1lyeUZC35mT+p7r3OZ7ZCJ0vX5KBJycGsXybtI5lyFJ
        -----END PRIVATE KEY-----

        """

    private static let authority = """
        -----BEGIN CERTIFICATE-----
        MIIBhTCCASugAwIBAgIUOMT8ktHfnf93bu8W9oI0h47rHLEwCgYIKoZIzj0EAwIw
        FzEVMBMGA1UEAwwMU2ltdWxhdGVkIENBMCAXDTI2MTEyNjEyNDYwMFoYDzIxMjYx
        MTAyMTI0NjAwWjAXMRUwEwYDVQQDDAxTaW11bGF0ZWQgQ0EwWTATBgcqhkjOPQIB
        BggqhkjOPQMBBwNCAAQbVCx4IuEQm4uB/DAJ8XZ84/LcVwvctUo8SoEfHaFSYBDE
        CVArtWx3WvO4VGm3cxz4Eyxxo7L/FmubMAEAx5bXo1MwUTAdBgNVHQ4EFgQUClsd
        p/SOsTner/kngr/xVDyM40YwHwYDVR0jBBgwFoAUClsdp/SOsTner/kngr/xVDyM
        40YwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAvu4fuxTcLsKT
        +eiI6TyZkMzrRPax3EdXThpyuTgPbPQCIBkby7NeApmNupPsWUjp4OuJupgs/KY0
        lAs4eAyKI6EX
        -----END CERTIFICATE-----

        """

    /// - Parameter folder: receives the files.
    package init(folder: String) throws {
        key = try PrivateKey(pem: Array(Self.pem.utf8))
        path = folder + "/AuthKey_\(Self.keyID).p8"
        authorityPath = folder + "/authority.pem"
        templatesPath = folder + "/templates.yaml"
        try Self.write(Self.pem, to: path)
        try Self.write(Self.authority, to: authorityPath)
        try Self.write(SimulatedTexts.yaml, to: templatesPath)
    }

    private static func write(_ text: String, to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0 else { throw SimulationFault("cannot write \(path)") }
        _ = Glibc.write(file, text, text.utf8.count)
        close(file)
    }
}

extension SimulatedKey {
    /// A worker's configuration.
    ///
    /// - Parameters:
    ///   - apps: their entries.
    ///   - lines: YAML at the top level.
    package func configuration(apps: String, lines: String = "") throws -> Configuration {
        let text = """
            kafka: {brokers: "127.0.0.6:9092", group: carillon}
            redis: {url: "redis://\(RedisSeat.address)"}
            \(lines)
            apps:
            \(apps)
            """
        return try Configuration.read(Array(text.utf8), source: "world").get()
    }

    /// An app's entry. Its further lines follow, each indented by four spaces.
    ///
    /// - Parameter hasSets: whether it has several sets of credentials, which a bind's `cert` names. A list of topics goes with them, so
    ///   that a bind of another topic is ignored.
    package func app(_ id: String, hasSets: Bool = false) -> String {
        func credentials(_ keyID: String) -> String { "{key_file: \(path), key_id: \(keyID), team_id: \(Self.teamID)}" }
        let sets = zip(["main", "second", "third"], [Self.keyIDs[0], Self.keyIDs[1], Self.keyIDs[1]])
        let text = hasSets ? sets.map { "\n      \($0): \(credentials($1))" }.joined() : " " + credentials(Self.keyID)
        let topic = "com.example.\(id)"
        return """
              - id: \(id)
                topic: \(hasSets ? "[\(topic)]" : topic)
                environment: production
                endpoint: \(APNsSeat.endpoint)
                ca_file: \(authorityPath)
                credentials:\(text)

            """
    }
}

/// A run cannot begin.
public struct SimulationFault: Error, CustomStringConvertible {
    public let description: String

    package init(_ description: String) { self.description = description }
}
