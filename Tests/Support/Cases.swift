import Glibc
import Trial

/// The data files under `Tests/Cases`.
public enum Cases {
    /// - Parameter file: of the caller, which lies in a folder of `Tests`.
    public static func text(_ name: String, file: String = #filePath) throws -> String {
        let path = "/" + file.split(separator: "/").dropLast(2).joined(separator: "/") + "/Cases/" + name
        guard let stream = fopen(path, "r") else { throw TrialFault("cannot open \(path)") }
        defer { fclose(stream) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&chunk, 1, chunk.count, stream), count > 0 { bytes += chunk[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }
}
