// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// Reads the small files of a credential.
enum CredentialFile {
    /// Much larger than any key or certificate chain.
    static var bytesMax: Int { 256 * 1024 }

    static func read(_ path: String) throws(APNsFault) -> [UInt8] {
        switch SmallFile.read(path, limit: bytesMax) {
        case .bytes(let bytes): return bytes
        case .unreadable(let why): throw APNsFault(.unreadableFile, "\(path): \(why)")
        }
    }

    /// A password alone in its file. An empty file is the empty password.
    static func readPassword(_ path: String) throws(APNsFault) -> Secret {
        switch SmallFile.readSecret(path) {
        case .success(let secret): return secret
        case .failure(let fault) where fault == .empty: return Secret(bytes: [])
        case .failure(let fault): throw APNsFault(.unreadableFile, "\(path): \(fault.why)")
        }
    }

    /// A file that holds a key.
    static func readKey(_ path: String) throws(APNsFault) -> Secret {
        do {
            return try SmallFile.readKey(path, limit: bytesMax).get()
        } catch {
            throw APNsFault(.unreadableFile, "\(path): \(error.why)")
        }
    }
}
