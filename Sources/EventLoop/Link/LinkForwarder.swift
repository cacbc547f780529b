/// What owns one link and hears of it through a `LinkForwarder`: it needs not be told which link speaks.
public protocol LinkOwner: AnyObject {
    func linkDidOpen()
    /// The buffer is the loop's and is void when the call returns.
    func received(_ bytes: UnsafeRawBufferPointer)
    func linkClosed(_ reason: LinkFault)
}

/// Stands between a link and its owner: the link's reference is a weak one, and an object to which one points pays for it
/// with every retain.
///
/// Kept by its owner, which it does not outlive.
public final class LinkForwarder: LinkDelegate {
    private unowned let owner: any LinkOwner

    public init(_ owner: any LinkOwner) {
        self.owner = owner
    }

    public func linkDidOpen(_ link: Link) { owner.linkDidOpen() }

    public func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer) { owner.received(bytes) }

    public func link(_ link: Link, didClose reason: LinkFault) { owner.linkClosed(reason) }
}
