package import Crypto
import Glibc

/// The provider key of all worlds: signatures, and so all bytes, are the same in each process.
package struct SimulatedKey {
    package static let keyID = "ABC123DEFG"
    package static let teamID = "DEF123GHIJ"
    package let key: PrivateKey
    package let path: String

    /// A key for these tests only.
    private static let pem = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgB9l98e2aY40Ue/Tu
        5SQhNKhN+TEgNvqu930lD5o3P6ihRANCAARqu/0dFd0IpFnxp49FUKed5kiBnoM4
        j9JHW4+18s0bH1lyeUZC35mT+p7r3OZ7ZCJ0vX5KBJycGsXybtI5lyFJ
        -----END PRIVATE KEY-----

        """

    /// - Parameter folder: receives the key's file.
    package init(folder: String) throws {
        key = try PrivateKey(pem: Array(Self.pem.utf8))
        path = folder + "/AuthKey_\(Self.keyID).p8"
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0 else { throw SimulationFault("cannot write \(path)") }
        _ = write(file, Self.pem, Self.pem.utf8.count)
        close(file)
    }
}

/// A run cannot begin.
public struct SimulationFault: Error, CustomStringConvertible {
    public let description: String

    package init(_ description: String) { self.description = description }
}
