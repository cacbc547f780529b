// SPDX-License-Identifier: Apache-2.0
import Glibc
import Processes

/// The data files under `Tests/Cases`.
public enum Cases {
    /// - Parameter file: of the caller, which lies below `Tests`.
    public static func text(_ name: String, file: String = #filePath) throws -> String {
        let folders = file.split(separator: "/")
        let tests = folders.prefix { $0 != "Tests" }.joined(separator: "/")
        return String(decoding: try bytes("/\(tests)/Tests/Cases/\(name)"), as: UTF8.self)
    }

    static func bytes(_ path: String) throws -> [UInt8] {
        guard let stream = fopen(path, "r") else { throw SetupFault("cannot open \(path)") }
        defer { fclose(stream) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&chunk, 1, chunk.count, stream), count > 0 { bytes += chunk[..<count] }
        return bytes
    }
}

/// The inputs that the fuzzers' targets keep, under `Tests/Corpus`.
public enum Corpus {
    /// Names and bytes, in the order of the names.
    public static func files(of target: String, file: String = #filePath) throws -> [(name: String, bytes: [UInt8])] {
        let folder = "/" + file.split(separator: "/").dropLast(2).joined(separator: "/") + "/Corpus/" + target
        guard let entries = FolderEntry.all(in: folder) else { throw SetupFault("cannot open \(folder)") }
        return try entries.map(\.name).filter { !$0.hasPrefix(".") }.sorted()
            .map { (name: $0, bytes: try Cases.bytes(folder + "/" + $0)) }
    }
}
