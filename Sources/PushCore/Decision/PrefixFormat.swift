// SPDX-License-Identifier: Apache-2.0
/// The app's `prefix`: the text before a body, with the sender's name in it (contract section 2, note 5).
public struct PrefixFormat: Sendable, Equatable {
    public static let place = "{nick}"
    public static let standard = PrefixFormat("{nick}: ")

    /// The texts before, between and after the places of the name; one if the format has no place.
    private let pieces: [String]

    public init(_ format: String) {
        var pieces: [String] = []
        var piece = ""
        var rest = Substring(format)
        while let brace = rest.firstIndex(of: "{") {
            piece += rest[..<brace]
            rest = rest[brace...]
            if rest.hasPrefix(Self.place) {
                pieces.append(piece)
                piece = ""
                rest = rest.dropFirst(Self.place.count)
            } else {
                piece.append(rest.removeFirst())
            }
        }
        self.pieces = pieces + [piece + rest]
    }

    /// The prefix with this name. Empty without a name if the format has a place for one.
    public func text(nick: String?) -> String {
        if pieces.count == 1 { return pieces[0] }
        guard let nick, !nick.isEmpty else { return "" }
        // The usual format: the name, then what parts it from the body.
        if pieces.count == 2, pieces[0].isEmpty { return nick + pieces[1] }
        return pieces.joined(separator: nick)
    }
}
