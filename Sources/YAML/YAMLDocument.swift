import CYaml

/// One YAML document as a tree, with what is wrong in it though it could be read.
///
/// The subset that configuration needs: scalars, sequences, mappings with plain keys. Anchors, aliases and tags are
/// refused, so that a small file never becomes a large tree and one value has one place. Size and depth are bounded.
public struct YAMLDocument: Sendable {
    public var root: YAMLNode
    /// Keys that were written twice in one mapping, each at its second place.
    public var repeatedKeys: [(key: String, mark: YAMLNode.Mark)]

    /// - Parameters:
    ///   - source: the name that marks and faults carry, such as the file's path.
    /// - Throws: what cannot be read at all, with its line.
    public init(
        parsing bytes: [UInt8], source: String, maxBytes: Int = 1 << 20, maxDepth: Int = 32
    ) throws(YAMLFault) {
        guard bytes.count <= maxBytes else {
            throw YAMLFault("longer than \(maxBytes) bytes", YAMLNode.Mark(source: source, line: 1, column: 1))
        }
        var reader = try TreeReader(source: source, maxDepth: maxDepth)
        root = try bytes.withUnsafeBufferPointer { (buffer) throws(YAMLFault) in
            try reader.document(buffer)
        }
        repeatedKeys = reader.repeatedKeys
    }
}

/// Why bytes are no YAML document that is understood here.
public struct YAMLFault: Error, Equatable, Sendable, CustomStringConvertible {
    public let text: String
    public let mark: YAMLNode.Mark

    init(_ text: String, _ mark: YAMLNode.Mark) {
        self.text = text
        self.mark = mark
    }

    public var description: String { "\(mark.source):\(mark.line): \(text)" }
}
