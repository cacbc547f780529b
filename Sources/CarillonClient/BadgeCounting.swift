// SPDX-License-Identifier: Apache-2.0
/// Who counts the number on the icon: the app's `badge` in Carillon's configuration.
public enum BadgeCounting: Sendable {
    /// `server`, `sender`: the payload has the number.
    case server
    /// `none`: the service extension counts (WPS).
    case client
}

extension CarillonPush {
    /// The number to show with this push.
    ///
    /// With `client`, only alerts that change the number go through the extension: each adds 1, or takes 1 away if it
    /// lowered the number, never below 0.
    ///
    /// - Parameter shown: the number on the icon, which app and extension share.
    /// - Returns: nil to leave the number as it is.
    public func badge(after shown: Int, counting: BadgeCounting) -> Int? {
        switch counting {
        case .server: return badge
        case .client:
            guard hasAlert, isMutable else { return nil }
            return max(0, shown + (lowersBadge ? -1 : 1))
        }
    }
}
