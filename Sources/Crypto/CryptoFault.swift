/// Why a key, a certificate or a signature could not be made or read, in words for the operator.
public struct CryptoFault: Error, Equatable, CustomStringConvertible {
    /// What kind of fault it is; equality and decisions go by this.
    public enum Code: Sendable {
        /// The text is no PEM private or public key.
        case notPEM
        /// The key is sound but not on the P-256 curve, so it cannot sign ES256.
        case wrongCurve
        /// OpenSSL refused an operation that should always work (out of memory, broken provider).
        case library
    }

    /// The kind.
    public let code: Code
    /// What happened and what to do about it. Holds no key material.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    public static func == (left: CryptoFault, right: CryptoFault) -> Bool { left.code == right.code }
}
