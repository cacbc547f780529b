// SPDX-License-Identifier: Apache-2.0
/// The events of a link, on the loop's thread and never inside one of the owner's own calls to the link.
public protocol LinkDelegate: AnyObject {
    /// The link is connected. With TLS, the peer is verified and the protocol agreed.
    func linkDidOpen(_ link: Link)
    /// Bytes arrived. The buffer is the loop's and valid only during the call. The call may write to or close any link.
    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer)
    /// The output had exceeded `lowWaterBytes` and has fallen to it or below.
    func linkDidDrain(_ link: Link)
    /// The link has ended. Called exactly once, as the last event, and not after `close()`.
    func link(_ link: Link, didClose reason: LinkFault)
}

extension LinkDelegate {
    public func linkDidDrain(_ link: Link) {}
}
