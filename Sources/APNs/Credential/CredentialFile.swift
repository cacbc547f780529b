import Telemetry

/// The few small files of a credential.
enum CredentialFile {
    /// Far above any key or certificate chain.
    static var bytesMax: Int { 256 * 1024 }

    static func read(_ path: String) throws(APNsFault) -> [UInt8] {
        switch SmallFile.read(path, limit: bytesMax) {
        case .bytes(let bytes): return bytes
        case .unreadable(let why): throw APNsFault(.unreadableFile, "\(path): \(why)")
        }
    }
}
