// SPDX-License-Identifier: Apache-2.0
import Glibc

/// One entry of a folder.
public struct FolderEntry: Sendable {
    public var name: String
    /// False for a link to a folder.
    public var isFolder: Bool

    /// A folder's entries without `.` and `..`, in the system's order; nil if it cannot be opened.
    public static func all(in path: String) -> [FolderEntry]? {
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        var found: [FolderEntry] = []
        // An entry is as long as its name, not as long as `dirent` declares. Copying all of `d_name` would read past
        // the buffer.
        let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
        while let entry = readdir(folder) {
            let start = UnsafeRawPointer(entry) + nameOffset
            let name = String(cString: start.assumingMemoryBound(to: CChar.self))
            guard name != ".", name != ".." else { continue }
            found.append(FolderEntry(name: name, isFolder: entry.pointee.d_type == UInt8(DT_DIR)))
        }
        return found
    }
}
