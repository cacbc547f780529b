/// What libzstd found wrong, in its own words.
public struct ZstdFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
