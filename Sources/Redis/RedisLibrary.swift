// SPDX-License-Identifier: Apache-2.0
internal import CHiredis

/// The C library under this module.
public enum RedisLibrary {
    /// The version of the hiredis headers at build time, because the library does not report its own.
    public static var headerVersion: String { "\(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)" }
}
