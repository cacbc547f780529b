import CZstd

/// The C library under this module.
public enum ZstdLibrary {
    /// Of the zstd that runs.
    public static var version: String { ZSTD_versionString().map { String(cString: $0) } ?? "unknown" }
}
