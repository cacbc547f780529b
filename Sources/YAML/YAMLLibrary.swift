// SPDX-License-Identifier: Apache-2.0
import CYaml

/// The C library under this module.
public enum YAMLLibrary {
    /// The version of the loaded libyaml.
    public static var version: String { yaml_get_version_string().map { String(cString: $0) } ?? "unknown" }
}
