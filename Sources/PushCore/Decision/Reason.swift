// SPDX-License-Identifier: Apache-2.0
/// The reason of a recipient's or device's outcome (contract section 3). APNs' own reasons are text.
public enum Reason: String, Sendable, CaseIterable {
    case ok
    case forced
    case noRecipients = "no_recipients"
    case acked
    case connectionOnly = "connection_only"
    case expired
    case alreadyRead = "already_read"
    case msgPushOff = "msg_push_off"
    case convMuted = "conv_muted"
    case dnd
    case desktopOnline = "desktop_online"
    case noToken = "no_token"
    case payloadTooLarge = "payload_too_large"
    case revoked
    case tokenMoved = "token_moved"
    case activityOver = "activity_over"
    case coalesced
    case alertsOff = "alerts_off"
}

/// The verdict of one (event, device) pair (contract section 3).
public enum Verdict: String, Sendable, CaseIterable {
    case accepted, rejected, expired, suppressed, online
    /// The only verdict that is not final.
    case parked
}
