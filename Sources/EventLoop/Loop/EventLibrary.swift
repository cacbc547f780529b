import CLibevent

/// The C libraries under this module.
public enum EventLibrary {
    /// Of the libevent that runs.
    public static var version: String { event_get_version().map { String(cString: $0) } ?? "unknown" }

    /// Of the C library that runs.
    public static var systemVersion: String { system_library_version().map { String(cString: $0) } ?? "unknown" }
}
