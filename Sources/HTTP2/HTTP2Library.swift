// SPDX-License-Identifier: Apache-2.0
import CNghttp2

/// The C library under this module.
public enum HTTP2Library {
    /// The version of the loaded nghttp2.
    public static var version: String {
        nghttp2_version(0).map { String(cString: $0.pointee.version_str) } ?? "unknown"
    }
}
