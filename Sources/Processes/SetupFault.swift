/// Something that tests, the demo or the bench need on this machine did not start, or did not do what it should.
public struct SetupFault: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}
