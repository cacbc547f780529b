// SPDX-License-Identifier: Apache-2.0
import CLibevent

/// The C libraries under this module.
public enum EventLibrary {
    /// The version of the loaded libevent.
    public static var version: String { event_get_version().map { String(cString: $0) } ?? "unknown" }

    /// The version of the loaded C library.
    public static var systemVersion: String { system_library_version().map { String(cString: $0) } ?? "unknown" }
}
