/// Tokens of one app whose owners are asked for in one call; each with its recipient, and its place among his.
final class OwnerBatch {
    let app: String
    var ref = WorkRef.none
    private(set) var tokens: [(recipient: WorkRef, place: Int)] = []
    private(set) var hexes: [String] = []

    init(app: String) { self.app = app }

    func append(_ recipient: WorkRef, place: Int, hex: String) {
        tokens.append((recipient, place))
        hexes.append(hex)
    }
}
