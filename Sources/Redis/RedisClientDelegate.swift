/// Hears what becomes of each command, on the loop's thread and never from inside one of its own calls to `command`.
///
/// Every tag that `command` or `evaluate` took is told exactly once, by `didReply` or by `didFail`. The calls may send
/// further commands and may close the client.
public protocol RedisClientDelegate: AnyObject {
    /// The command's reply; it looks into storage that is void when the call returns.
    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply)
    /// The command has no reply, or an error for one.
    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault)
    /// All replies that came together are delivered: the time for what is better done once for all of them.
    func redisDidDeliverReplies(_ client: RedisClient)
    /// The connection's state changed; after a loss, the tags that it took along have been told before.
    func redis(_ client: RedisClient, didChange state: RedisClient.State)
}

extension RedisClientDelegate {
    public func redisDidDeliverReplies(_ client: RedisClient) {}
    public func redis(_ client: RedisClient, didChange state: RedisClient.State) {}
}
