// SPDX-License-Identifier: Apache-2.0
/// Receives the result of each command, on the loop's thread and never inside one of its own calls to `command`.
///
/// Every tag that `command` or `evaluate` accepted is reported exactly once, by `didReply` or by `didFail`. The methods
/// may send further commands and may close the client.
public protocol RedisClientDelegate: AnyObject {
    /// The command's reply. It refers to memory that is valid only during the call.
    func redis(_ client: RedisClient, didReply tag: UInt64, reply: borrowing RedisReply)
    /// The command has no reply, or an error reply.
    func redis(_ client: RedisClient, didFail tag: UInt64, fault: RedisFault)
    /// All replies that arrived together are delivered: the time for work that is better done once for all of them.
    func redisDidDeliverReplies(_ client: RedisClient)
    /// The connection's state changed. After a loss, its tags have been reported before.
    func redis(_ client: RedisClient, didChange state: RedisClient.State)
}

extension RedisClientDelegate {
    public func redisDidDeliverReplies(_ client: RedisClient) {}
    public func redis(_ client: RedisClient, didChange state: RedisClient.State) {}
}
