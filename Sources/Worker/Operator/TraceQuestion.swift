// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore

/// A question in the page's form: why did this user get no push for this message?
package struct TraceQuestion: Sendable, Equatable {
    var app: String
    var uid: String
    /// Nil asks only for the present decision.
    var message: String?

    enum Reading: Equatable {
        /// Nothing was asked yet.
        case empty
        case question(TraceQuestion)
        /// The fault, in words.
        case wrong(String)
    }

    /// - Parameter query: the query of the path, as sent.
    static func read(_ query: String?) -> Reading {
        guard let fields = HTTPQuery(query) else { return .wrong("the address cannot be read") }
        guard fields["app"] != nil || fields["user"] != nil || fields["msg"] != nil else { return .empty }
        let app = fields["app"] ?? ""
        let uid = fields["user"] ?? ""
        let message = fields["msg"] ?? ""
        if app.isEmpty { return .wrong("the app is missing") }
        if uid.isEmpty { return .wrong("the user is missing") }
        guard app.utf8.count <= InputLimit.id, uid.utf8.count <= InputLimit.user,
            message.utf8.count <= InputLimit.id
        else {
            return .wrong("an id is longer than the contract allows: app and message 64 bytes, user 128")
        }
        return .question(TraceQuestion(app: app, uid: uid, message: message.isEmpty ? nil : message))
    }
}

/// The answer.
enum TraceAnswer: Sendable {
    /// The recorded decision (nil if no message was asked about), and the predicted result of a plain message now.
    case found(TraceReport?, now: [Explanation])
    /// The question can never be answered; the text gives the reason.
    case wrong(String)
    /// It cannot be answered now; the text gives the reason.
    case away(String)

    /// The HTTP status.
    var status: Int {
        switch self {
        case .found: 200
        case .wrong: 400
        case .away: 503
        }
    }
}
