// SPDX-License-Identifier: Apache-2.0
import CSimdjson

/// The C++ library under this module.
public enum JSONLibrary {
    /// The version of the simdjson headers at build time, because the library does not report its own.
    public static var headerVersion: String { String(cString: csimdjson_header_version()) }
}
