// SPDX-License-Identifier: Apache-2.0
import Glibc
import YAML

/// A file with a key, a password or a token.
public struct SecretFile: Sendable, Equatable {
    public let path: String
    /// Where the configuration names it.
    let mark: YAMLNode.Mark

    /// Users other than the owner that may read it, with the cure; nil if there are none, or no such file.
    ///
    /// Links are followed, because orchestrators mount secrets through links.
    public var exposure: Problem? {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        let mode = facts.st_mode & 0o777
        guard mode & 0o077 != 0 else { return nil }
        let who = mode & 0o007 != 0 ? "every user of this machine" : "its group"
        let digits = String(mode, radix: 8)
        return Problem(
            mark, "\(path) can be opened by \(who) (mode 0\(digits)): chmod 600, owned by the worker's user")
    }

    public static func == (one: SecretFile, other: SecretFile) -> Bool { one.path == other.path }
}

/// Collects secret files; for one load and one thread.
final class SecretFileList {
    private(set) var files: [SecretFile] = []

    func add(_ path: String, _ mark: YAMLNode.Mark) {
        let file = SecretFile(path: path, mark: mark)
        if !files.contains(file) { files.append(file) }
    }
}
