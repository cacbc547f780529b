// SPDX-License-Identifier: Apache-2.0
/// The reason why a key, a certificate or a signature could not be created or read, for the operator.
public struct CryptoFault: Error, Equatable, CustomStringConvertible {
    /// The kind of fault. Equality and decisions use it.
    public enum Code: Sendable {
        /// The text is not a PEM private or public key.
        case notPEM
        /// The key is valid but not on the P-256 curve, so it cannot sign ES256.
        case wrongCurve
        /// OpenSSL refused an operation that should always work (out of memory, broken provider).
        case library
    }

    /// The kind.
    public let code: Code
    /// The fault and its cure. Contains no key material.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }

    public static func == (left: CryptoFault, right: CryptoFault) -> Bool { left.code == right.code }
}
