/// A test's own tools did not work.
public struct SupportFault: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
