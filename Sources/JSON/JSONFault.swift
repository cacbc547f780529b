// SPDX-License-Identifier: Apache-2.0
/// The reason why bytes are not the expected JSON.
public struct JSONFault: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Code: Sendable {
        case empty, tooLong, tooDeep, outOfMemory, notUTF8, badString, unclosedString, badNumber, badStructure
        /// The text begins with a byte order mark, which JSON does not allow (RFC 8259 section 8.1).
        case byteOrderMark
    }

    public let code: Code
    /// The position of the fault in the text, from 0; the number of bytes if the text ends too early.
    public let byte: Int

    public init(_ code: Code, byte: Int = 0) {
        self.code = code
        self.byte = byte
    }

    public var description: String {
        switch code {
        case .empty: "empty"
        case .tooLong: "too many bytes"
        case .tooDeep: "nested too deeply"
        case .outOfMemory: "out of memory"
        case .notUTF8: "broken UTF-8"
        case .badString: "broken string or escape"
        case .unclosedString: "a string does not end"
        case .badNumber: "broken number"
        case .badStructure: "broken JSON"
        case .byteOrderMark: "the text begins with a byte order mark"
        }
    }
}
