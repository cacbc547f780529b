// SPDX-License-Identifier: Apache-2.0
import CZstd

/// The C library under this module.
public enum ZstdLibrary {
    /// The version of the loaded libzstd.
    public static var version: String { ZSTD_versionString().map { String(cString: $0) } ?? "unknown" }
}
