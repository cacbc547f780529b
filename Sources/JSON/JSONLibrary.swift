import CSimdjson

/// The C++ library under this module.
public enum JSONLibrary {
    /// Of the headers of simdjson that this program was built with: the library does not tell its own.
    public static var headerVersion: String { String(cString: csimdjson_header_version()) }
}
