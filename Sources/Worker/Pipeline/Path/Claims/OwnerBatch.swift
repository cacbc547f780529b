// SPDX-License-Identifier: Apache-2.0
/// Tokens of one app with one owner query; each with its recipient, and its index among the recipient's tokens.
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
