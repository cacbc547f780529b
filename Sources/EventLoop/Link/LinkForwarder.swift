// SPDX-License-Identifier: Apache-2.0
/// An owner of one link that receives its events through a `LinkForwarder`, without the link as an argument.
public protocol LinkOwner: AnyObject {
    func linkDidOpen()
    /// The buffer is the loop's and valid only during the call.
    func received(_ bytes: UnsafeRawBufferPointer)
    func linkClosed(_ reason: LinkFault)
}

/// Passes a link's events to its owner. The link has a weak reference to its delegate, and an object with weak
/// references pays for them with every retain. The forwarder takes that cost instead of the owner.
///
/// The owner keeps it, and it does not outlive the owner.
public final class LinkForwarder: LinkDelegate {
    private unowned let owner: any LinkOwner

    public init(_ owner: any LinkOwner) {
        self.owner = owner
    }

    public func linkDidOpen(_ link: Link) { owner.linkDidOpen() }

    public func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) { owner.received(bytes) }

    public func link(_ link: Link, didClose reason: LinkFault) { owner.linkClosed(reason) }
}
