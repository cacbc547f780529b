// SPDX-License-Identifier: Apache-2.0
internal import EventLoop

/// Properties that a server reports at the greeting (INFO, CLUSTER INFO). Nil if it does not report them, for example
/// to a user without the right.
public struct RedisServerFacts: Sendable, Equatable {
    public enum Mode: String, Sendable {
        case standalone, cluster, sentinel
    }

    /// The properties from `CLUSTER INFO`, for a node that belongs to a cluster.
    struct Cluster: Equatable {
        var isOK = false
        var slotsAssigned = 0
        /// Masters that serve slots.
        var size = 0
    }

    /// `redis_version`. Forks report the version that they are compatible with.
    public var version: String?
    public var mode: Mode?
    public var isReplica: Bool?
    /// `maxmemory_policy`.
    public var evictionPolicy: String?
    /// `used_memory` and `maxmemory` in bytes; no limit is 0.
    public var memory: Int64?
    public var memoryMax: Int64?
    /// `aof_enabled`: each write goes to a file.
    public var keepsLog: Bool?
    /// Our clock minus the server's (`server_time_usec`) in milliseconds when it answered, plus a round trip.
    public var clockAheadMs: Int64?
    /// `connected_slaves`: replicas that are copying from it.
    public var replicaCount: Int?
    /// `master_link_status`: a replica that is copying from its master.
    public var isLinkedToMaster: Bool?
    /// `run_id`: identifies the process.
    var runID: [UInt8]?
    /// `master_replid`: changes when it becomes the master again.
    var replicationID: [UInt8]?
    var cluster: Cluster?

    /// The minimum version: its scripts accept `#!lua` and flags, its SET accepts NX together with GET.
    public static let leastMajorVersion = 7
    /// With any other policy state may vanish: an evicted mark causes a second push, an evicted token loses all pushes.
    public static let safePolicy = "noeviction"
    static let slots = 16_384
    private static let valueBytesMax = 64

    public init() {}

    var roleName: String {
        switch isReplica {
        case true?: "replica"
        case false?: "master"
        case nil: "unknown"
        }
    }

    /// Reads the answer of INFO. Unknown lines are skipped.
    mutating func take(info: UnsafeRawBufferPointer, nowMs: Int64) {
        Self.forEachField(of: info) { name, value in
            switch name {
            case "redis_version": version = String(decoding: value, as: UTF8.self)
            case "redis_mode": mode = Mode(rawValue: String(decoding: value, as: UTF8.self))
            case "run_id": runID = Array(value)
            case "master_replid": replicationID = Array(value)
            case "role": isReplica = value.elementsEqual("slave".utf8)
            case "aof_enabled": keepsLog = value.elementsEqual("1".utf8)
            case "server_time_usec":
                clockAheadMs = Int64(String(decoding: value, as: UTF8.self)).map { nowMs &- $0 / 1000 }
            case "connected_slaves": replicaCount = Int(String(decoding: value, as: UTF8.self))
            case "master_link_status": isLinkedToMaster = value.elementsEqual("up".utf8)
            case "used_memory": memory = Int64(String(decoding: value, as: UTF8.self))
            case "maxmemory": memoryMax = Int64(String(decoding: value, as: UTF8.self))
            case "maxmemory_policy": evictionPolicy = String(decoding: value, as: UTF8.self)
            default: break
            }
        }
    }

    /// Identifies this process in its present time as master: another process, or the same one after another master,
    /// has a different number (FNV-1a of both names, positive). Nil if it does not report them.
    var reign: Int64? {
        guard let runID, let replicationID else { return nil }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in runID { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        for byte in replicationID { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return Int64(hash >> 1)
    }

    /// Reads the answer of CLUSTER INFO.
    mutating func take(clusterInfo: UnsafeRawBufferPointer) {
        var found = Cluster()
        Self.forEachField(of: clusterInfo) { name, value in
            let number = Int(String(decoding: value, as: UTF8.self)) ?? 0
            switch name {
            case "cluster_state": found.isOK = value.elementsEqual("ok".utf8)
            case "cluster_slots_assigned": found.slotsAssigned = number
            case "cluster_size": found.size = number
            default: break
            }
        }
        cluster = found
    }

    /// Lines `name:value`. Empty values and values over 64 bytes are skipped.
    private static func forEachField(
        of text: UnsafeRawBufferPointer, _ body: (String, Slice<UnsafeRawBufferPointer>) -> Void
    ) {
        for line in text.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
            guard let colon = line.prefix(Self.valueBytesMax).firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = line[(colon + 1)...]
            guard !value.isEmpty, value.count <= Self.valueBytesMax else { continue }
            body(String(decoding: line[..<colon], as: UTF8.self), value)
        }
    }

    /// The reason why this server is unusable in that role; nil if nothing excludes it. A replica can be read from.
    func refusal(as role: RedisRole) -> RedisFault? {
        if role == .sentinel {
            return mode == .sentinel || mode == nil
                ? nil : RedisFault(.unsupported, "no Sentinel answers here: redis.sentinel.nodes names Sentinels")
        }
        if mode == .sentinel {
            return RedisFault(
                .unsupported,
                "a Sentinel answers here, not the Redis that it watches: name it in redis.sentinel.nodes, in place of "
                    + "redis.url")
        }
        if let version, let major = Int(version.prefix { $0 != "." }), major < Self.leastMajorVersion {
            return RedisFault(
                .unsupported, "Redis \(version) is too old: \(Self.leastMajorVersion).0 is the least version")
        }
        if role == .node {
            return mode == .standalone
                ? RedisFault(
                    .unsupported,
                    "this is not a node of a Redis Cluster: a list as redis.url means a cluster; give one server without a list"
                )
                : nil
        }
        return mode == .cluster ? cluster?.refusal(isReplica: isReplica ?? false) : nil
    }
}

extension RedisServerFacts.Cluster {
    /// A node may serve as the single server with all keys if it serves all slots.
    fileprivate func refusal(isReplica: Bool) -> RedisFault? {
        if size > 1 || isReplica {
            return RedisFault(
                .unsupported,
                "this is one node of a Redis Cluster, and the other nodes' keys are not here: give a list of nodes as "
                    + "redis.url, of this one alone [url]")
        }
        guard isOK, slotsAssigned == RedisServerFacts.slots else {
            return RedisFault(
                .clusterDown,
                "the cluster's state is \(isOK ? "ok" : "fail"), and \(slotsAssigned) of \(RedisServerFacts.slots) slots are "
                    + "served")
        }
        return nil
    }
}
