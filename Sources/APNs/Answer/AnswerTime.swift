// SPDX-License-Identifier: Apache-2.0
/// The `timestamp` of a 410: since when APNs knows that the token is gone.
public enum AnswerTime: Sendable, Equatable {
    /// The answer has none.
    case absent
    /// Unix milliseconds.
    case ms(Int64)
    /// Text, a fraction or another value that is no whole number: no proof of anything.
    case unreadable

    /// The milliseconds of a time that could be read.
    public var milliseconds: Int64? {
        guard case .ms(let milliseconds) = self else { return nil }
        return milliseconds
    }
}
