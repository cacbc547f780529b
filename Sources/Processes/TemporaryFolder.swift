// SPDX-License-Identifier: Apache-2.0
import Glibc
import Telemetry

/// A new folder in the system's temporary folder. It is removed with its content when the last reference goes.
public final class TemporaryFolder: Sendable {
    public let path: String
    /// Folders with references. They are also removed at the process's end.
    private static let living: Guarded<Set<String>> = {
        atexit { TemporaryFolder.removeLiving() }
        return Guarded([])
    }()

    public init() throws(SetupFault) {
        var template = Array("/tmp/carillon-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SetupFault("cannot make a temporary folder") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        Self.living.withLock { [path] in _ = $0.insert(path) }
    }

    deinit {
        Self.removeTree(path)
        Self.living.withLock { [path] in _ = $0.remove(path) }
    }

    /// Removes all remaining folders, for an end of the process at which references do not go.
    public static func removeLiving() {
        for path in living.withLock({ $0 }) { removeTree(path) }
    }

    private static func removeTree(_ path: String) {
        for entry in FolderEntry.all(in: path) ?? [] {
            // A link is removed, never followed.
            if entry.isFolder { removeTree(path + "/" + entry.name) } else { unlink(path + "/" + entry.name) }
        }
        rmdir(path)
    }

    /// The path of a file in the folder.
    public func file(_ name: String) -> String { path + "/" + name }

    /// Writes a file into the folder and returns its path.
    @discardableResult
    public func write(_ bytes: [UInt8], to name: String) throws(SetupFault) -> String {
        let place = file(name)
        guard let stream = fopen(place, "w") else { throw SetupFault("cannot write \(name)") }
        defer { fclose(stream) }
        guard fwrite(bytes, 1, bytes.count, stream) == bytes.count else { throw SetupFault("cannot write \(name)") }
        return place
    }
}
