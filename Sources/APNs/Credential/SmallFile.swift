import Glibc

/// Reads the few small files of a credential; no Foundation for that.
enum SmallFile {
    /// Far above any key or certificate chain.
    static var bytesMax: Int { 256 * 1024 }

    static func read(_ path: String) throws(APNsFault) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw fault(path, errno) }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: bytesMax)
        var count = 0
        while count < bytesMax {
            let got = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw fault(path, errno) }
            if got == 0 { return Array(bytes[..<count]) }
            count += got
        }
        throw APNsFault(.unreadableFile, "\(path): larger than \(bytesMax) bytes, so not a key or certificate")
    }

    private static func fault(_ path: String, _ code: Int32) -> APNsFault {
        APNsFault(.unreadableFile, "\(path): \(String(cString: strerror(code)))")
    }
}
