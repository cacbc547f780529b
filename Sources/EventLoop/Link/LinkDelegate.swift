/// What a link tells its owner, on the loop's thread and never from inside one of the owner's own calls to the link.
public protocol LinkDelegate: AnyObject {
    /// The link is connected and, with TLS, its peer is verified and the protocol agreed.
    func linkDidOpen(_ link: Link)
    /// Bytes came; the buffer is the loop's and is void when the call returns. The call may write to or close any link.
    func link(_ link: Link, didReceive bytes: UnsafeRawBufferPointer)
    /// The output, which had grown over `lowWaterBytes`, has fallen to it or below.
    func linkDidDrain(_ link: Link)
    /// The link is over: told exactly once, last, and not after `close()`.
    func link(_ link: Link, didClose reason: LinkFault)
}

extension LinkDelegate {
    public func linkDidDrain(_ link: Link) {}
}
