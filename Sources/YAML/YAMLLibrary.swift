import CYaml

/// The C library under this module.
public enum YAMLLibrary {
    /// Of the libyaml that runs.
    public static var version: String { yaml_get_version_string().map { String(cString: $0) } ?? "unknown" }
}
