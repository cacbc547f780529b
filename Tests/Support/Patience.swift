// SPDX-License-Identifier: Apache-2.0

/// The real time that a test waits for an event before it fails. A busy machine may hold work up for long, so only a failing test
/// waits until the end.
public enum Patience {
    public static let seconds: Double = 300
    public static let duration: Duration = .seconds(seconds)
}
