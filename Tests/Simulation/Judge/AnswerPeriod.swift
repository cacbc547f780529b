// SPDX-License-Identifier: Apache-2.0
/// An answer that APNs gives by fault for a time.
struct AnswerPeriod {
    var fromNanos: UInt64
    var toNanos: UInt64
    var status: Int
    var retryAfterSeconds: Int?
    /// Nil: any app.
    var app: String?
    /// Nil: any token.
    var token: String?
    /// Since when the token is dead, Unix ms, as a 410 says.
    var timestampMs: Int64?
    /// The answer comes so much later.
    var delayMs: Int64 = 0
}
