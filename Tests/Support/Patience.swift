// SPDX-License-Identifier: Apache-2.0

/// How long a test waits in real time for what must come, before it fails: longer than any busy machine holds work up. Only a
/// failing test lasts so long.
public enum Patience {
    public static let duration: Duration = .seconds(300)
    public static let seconds: Double = 300
}
