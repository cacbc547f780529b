public import Crypto

/// Who sends: a provider key (`.p8`) that signs tokens, or a certificate shown in the TLS handshake.
public enum APNsCredential: Sendable {
    case token(key: PrivateKey, keyID: String, teamID: String)
    /// PEM text of the certificate chain and of its unencrypted key.
    case certificate(chainPEM: [UInt8], keyPEM: [UInt8])

    /// Reads a `.p8` file as Apple hands it out.
    ///
    /// - Throws: `unreadableFile` or `badCredential`, naming the file and the cure.
    public static func token(keyFile: String, keyID: String, teamID: String) throws(APNsFault) -> APNsCredential {
        for (name, id) in [("key id", keyID), ("team id", teamID)] {
            guard id.utf8.count == 10, id.utf8.allSatisfy(isIDByte) else {
                throw APNsFault(.badCredential, "\(name) '\(id)' must be ten capital letters and digits")
            }
        }
        let pem = try SmallFile.read(keyFile)
        do {
            return .token(key: try PrivateKey(pem: pem), keyID: keyID, teamID: teamID)
        } catch {
            throw APNsFault(.badCredential, "\(keyFile): \(error.description)")
        }
    }

    /// Reads a certificate and its key from PEM files; one file may hold both.
    public static func certificate(chainFile: String, keyFile: String) throws(APNsFault) -> APNsCredential {
        .certificate(chainPEM: try SmallFile.read(chainFile), keyPEM: try SmallFile.read(keyFile))
    }

    var isToken: Bool {
        if case .token = self { true } else { false }
    }

    private static func isIDByte(_ byte: UInt8) -> Bool {
        (byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z"))
            || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
    }
}
