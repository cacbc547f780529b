// SPDX-License-Identifier: Apache-2.0
/// The owners of a page of `to.tokens`, as Redis answers about one after the other.
final class OwnerPage: Equatable {
    /// In the tokens' order; nil: the token has no owner.
    private(set) var uids: [String?]
    private var answers: Answers
    var hasFailed: Bool { answers.hasFailed }

    static func == (one: OwnerPage, other: OwnerPage) -> Bool { one === other }

    init(count: Int) {
        uids = Array(repeating: nil, count: count)
        answers = Answers(count)
    }

    /// - Returns: true if this was the last answer.
    func answered(_ place: Int, _ uid: String?) -> Bool {
        if uids.indices.contains(place) { uids[place] = uid }
        return answers.take()
    }

    /// - Returns: true if this was the last answer.
    func failed() -> Bool { answers.take(failed: true) }
}
