/// A part of a world on this machine did not come up.
public struct TrialFault: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
