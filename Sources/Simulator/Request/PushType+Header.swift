// SPDX-License-Identifier: Apache-2.0
import APNsProtocol

extension PushType {
    /// The push type of a header value; nil for an unknown value.
    init?(_ value: ArraySlice<UInt8>) {
        // The two most frequent types first.
        if value.elementsEqual("alert".utf8) {
            self = .alert
        } else if value.elementsEqual("background".utf8) {
            self = .background
        } else {
            self.init(rawValue: String(decoding: value, as: UTF8.self))
        }
    }
}
