// SPDX-License-Identifier: Apache-2.0
public import Crypto
import EventLoop
public import Telemetry

/// The sender's credential: a provider key (`.p8`) that signs tokens, or a certificate for the TLS handshake.
public enum APNsCredential: Sendable {
    case token(key: PrivateKey, keyID: String, teamID: String)
    /// PEM text of the certificate chain and of its unencrypted key.
    case certificate(chainPEM: [UInt8], keyPEM: Secret)
    /// A PKCS #12 archive and its password, empty if it has none.
    case archive(bytes: [UInt8], password: Secret)

    /// Reads a `.p8` file as Apple provides it.
    ///
    /// - Throws: `unreadableFile` or `badCredential`, naming the file and the cure.
    public static func token(keyFile: String, keyID: String, teamID: String) throws(APNsFault) -> APNsCredential {
        for (name, id) in [("key id", keyID), ("team id", teamID)] {
            guard id.utf8.count == 10, id.utf8.allSatisfy(isIDByte) else {
                throw APNsFault(.badCredential, "\(name) '\(id)' must be ten capital letters and digits")
            }
        }
        let pem = try CredentialFile.readKey(keyFile)
        let read = pem.withBytes { bytes in Result { () throws(CryptoFault) in try PrivateKey(pem: bytes) } }
        do {
            return .token(key: try read.get(), keyID: keyID, teamID: teamID)
        } catch {
            throw APNsFault(.badCredential, "\(keyFile): \(error.description)")
        }
    }

    /// Reads a certificate and its key from PEM files; one file may hold both.
    ///
    /// - Throws: `unreadableFile`, or `badCredential` where the two do not fit.
    public static func certificate(chainFile: String, keyFile: String) throws(APNsFault) -> APNsCredential {
        let read = APNsCredential.certificate(
            chainPEM: try CredentialFile.read(chainFile), keyPEM: try CredentialFile.readKey(keyFile))
        return try read.checked(chainFile)
    }

    /// Reads a PKCS #12 archive, as Apple's keychain exports it. The password is alone in a file.
    ///
    /// - Throws: `unreadableFile`, or `badCredential` if the password is wrong or a part is missing.
    public static func archive(file: String, passwordFile: String?) throws(APNsFault) -> APNsCredential {
        let password = try passwordFile.map { path throws(APNsFault) in try CredentialFile.readPassword(path) }
        let read = APNsCredential.archive(
            bytes: try CredentialFile.read(file), password: password ?? Secret(bytes: []))
        return try read.checked(file)
    }

    /// End of the certificate's validity in Unix seconds; nil for a provider key, which does not expire.
    public func validUntilSeconds() throws(APNsFault) -> Int64? {
        do {
            return try identity?.validUntilSeconds()
        } catch {
            throw APNsFault(.badCredential, error.description)
        }
    }

    /// The bundle id in the certificate's subject; nil for a provider key or without one.
    public func bundleID() throws(APNsFault) -> String? {
        do {
            return try identity?.userID()
        } catch {
            throw APNsFault(.badCredential, error.description)
        }
    }

    private func checked(_ file: String) throws(APNsFault) -> APNsCredential {
        do {
            _ = try validUntilSeconds()
            return self
        } catch {
            throw APNsFault(.badCredential, "\(file): \(error.description)")
        }
    }

    /// The identity for the TLS handshake; nil for a provider key.
    var identity: TLSIdentity? {
        switch self {
        case .token: nil
        case .certificate(let chain, let key): .pem(certificate: chain, key: key)
        case .archive(let bytes, let password): .pkcs12(bytes, password: password)
        }
    }

    var isToken: Bool {
        if case .token = self { true } else { false }
    }

    private static func isIDByte(_ byte: UInt8) -> Bool {
        (byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z"))
            || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
    }
}
