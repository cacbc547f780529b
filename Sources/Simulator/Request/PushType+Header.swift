import APNsProtocol

extension PushType {
    /// The type of a header value; nil for an unknown one.
    init?(_ value: ArraySlice<UInt8>) {
        // The two that nearly all traffic is made of first.
        if value.elementsEqual("alert".utf8) {
            self = .alert
        } else if value.elementsEqual("background".utf8) {
            self = .background
        } else {
            self.init(rawValue: String(decoding: value, as: UTF8.self))
        }
    }
}
