internal import CHiredis

/// The C library under this module.
public enum RedisLibrary {
    /// Of the headers of hiredis that this program was built with: the library does not tell its own.
    public static var headerVersion: String { "\(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)" }
}
