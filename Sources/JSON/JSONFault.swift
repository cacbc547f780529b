/// The reason why bytes are not the expected JSON.
public struct JSONFault: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Code: Sendable {
        case empty, tooLong, tooDeep, outOfMemory, notUTF8, badString, unclosedString, badNumber, badStructure
    }

    public let code: Code

    public init(_ code: Code) {
        self.code = code
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
        }
    }
}
