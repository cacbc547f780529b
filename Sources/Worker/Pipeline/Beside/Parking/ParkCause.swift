// SPDX-License-Identifier: Apache-2.0
/// The cause of parking; also the reason of the `parked` record in `push.results`.
enum ParkCause: String, Sendable, CaseIterable {
    /// APNs refuses the credential.
    case credential
    /// APNs cannot be reached, or reports that it is unavailable.
    case unavailable
    /// APNs asked for a longer wait than memory allows (Retry-After, 429, 500, 503).
    case retryAfter = "retry_after"
    /// The user's desktop comes first.
    case desktopFirst = "desktop_first"
    /// The app's pushes per second (`limits.rate`).
    case rate
    /// The app's share of the shard's work (`limits.share`).
    case share
    /// Redis takes no writes, so that only the record in the topic can say which pushes APNs accepted.
    case unclaimed
    /// An earlier push of the device, or an earlier event of the user or conversation, is parked.
    case behind
    /// The message waits for its own time (`push.send_at_ms`).
    case scheduled
    /// The device had its background pushes of the hour (`limits.background_per_hour`).
    case background
}

extension ParkCause {
    /// Later pushes of the device wait behind it. Not behind a device that waits for a desktop, for an ack or for its next hour.
    var holdsDevice: Bool {
        switch self {
        case .desktopFirst, .unclaimed, .scheduled, .background: false
        case .credential, .unavailable, .retryAfter, .rate, .share, .behind: true
        }
    }

    /// Whether parked work begins in the order of its events. A scheduled message begins at its own time, and of background pushes
    /// the script decides which one goes.
    var keepsOrder: Bool { self != .scheduled && self != .background }

    /// Whether later pushes of the device pass it, and a repeat learns of the wait from the recipient's mark (`EarlierWait`).
    var isNotedInMark: Bool { self == .desktopFirst || self == .background }

    /// APNs asked to leave the device alone, or an earlier push of the device waits. It ends with an accepted push to the device.
    var waitsForDevice: Bool { self == .retryAfter || self == .behind }

    /// The end of the wait is a time, and not the end of a trouble.
    var isTimed: Bool {
        switch self {
        case .retryAfter, .desktopFirst, .unclaimed, .behind, .scheduled, .background: true
        case .credential, .unavailable, .rate, .share: false
        }
    }
}
