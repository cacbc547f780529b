// SPDX-License-Identifier: Apache-2.0
/// A fault of libzstd, with the library's text.
public struct ZstdFault: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
