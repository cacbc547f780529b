// SPDX-License-Identifier: Apache-2.0
import CYaml

/// One YAML document as a tree, with its repairable problems.
///
/// The subset for configuration: scalars, sequences, mappings with plain keys. Anchors, aliases and tags are refused,
/// so that a small file never becomes a large tree and each value has one position. Size and depth are bounded.
public struct YAMLDocument: Sendable {
    public var root: YAMLNode
    /// Keys that are repeated in one mapping, each with its second position.
    public var repeatedKeys: [(key: String, mark: YAMLNode.Mark)]

    /// A byte order mark at the beginning is skipped.
    ///
    /// - Parameters:
    ///   - source: the name for marks and faults, such as the file's path.
    /// - Throws: the first fault that makes the text unreadable, with its line.
    public init(
        parsing bytes: [UInt8], source: String, maxBytes: Int = 1 << 20, maxDepth: Int = 32
    ) throws(YAMLFault) {
        guard bytes.count <= maxBytes else {
            throw YAMLFault("longer than \(maxBytes) bytes", YAMLNode.Mark(source: source, line: 1, column: 1))
        }
        var reader = try TreeReader(source: source, maxDepth: maxDepth)
        // libyaml looks for the mark only where it has to find out the encoding.
        let mark = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        root = try bytes.withUnsafeBufferPointer { (buffer) throws(YAMLFault) in
            try reader.document(UnsafeBufferPointer(rebasing: buffer[mark...]))
        }
        repeatedKeys = reader.repeatedKeys
    }
}

/// The reason why bytes are not an accepted YAML document.
public struct YAMLFault: Error, Equatable, Sendable, CustomStringConvertible {
    public let text: String
    public let mark: YAMLNode.Mark

    init(_ text: String, _ mark: YAMLNode.Mark) {
        self.text = text
        self.mark = mark
    }

    public var description: String { "\(mark.source):\(mark.line): \(text)" }
}
