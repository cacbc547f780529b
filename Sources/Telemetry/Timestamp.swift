// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// RFC 3339 in UTC.
public enum Timestamp {
    /// With milliseconds.
    public static func text(seconds: Int64, nanos: Int64) -> String {
        "\(InstantText.dateAndTime(seconds: seconds)).\(InstantText.padded(nanos / 1_000_000, 3))Z"
    }

    /// Without a fraction.
    public static func text(seconds: Int64) -> String { "\(InstantText.dateAndTime(seconds: seconds))Z" }
}
