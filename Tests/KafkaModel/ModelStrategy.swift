// SPDX-License-Identifier: Apache-2.0
/// A partition by its topic's name.
struct ModelPlace: Hashable, Comparable {
    let topic: String
    let partition: Int32

    static func < (one: ModelPlace, other: ModelPlace) -> Bool {
        (one.topic, one.partition) < (other.topic, other.partition)
    }
}

/// How a group shares its partitions.
enum ModelStrategy: Equatable {
    case range, roundRobin, cooperativeSticky

    struct Member {
        var topics: [String]
        var owned: [ModelPlace]
    }

    /// By the names of the client's option; the first of several.
    init(named names: String) {
        switch names.split(separator: ",").first {
        case "cooperative-sticky": self = .cooperativeSticky
        case "roundrobin": self = .roundRobin
        default: self = .range
        }
    }

    var isCooperative: Bool { self == .cooperativeSticky }

    /// The share of each member, in their order.
    func share(_ members: [Member], countOf count: (String) -> Int) -> [[ModelPlace]] {
        let topics = Set(members.flatMap(\.topics)).sorted()
        let all = topics.flatMap { topic in
            (0..<Int32(count(topic))).map { ModelPlace(topic: topic, partition: $0) }
        }
        switch self {
        case .range: return rangeShares(members, topics, count)
        case .roundRobin: return dealt(all, to: members)
        case .cooperativeSticky: return withoutMoving(sticky(all, members), members)
        }
    }

    private func rangeShares(_ members: [Member], _ topics: [String], _ count: (String) -> Int) -> [[ModelPlace]] {
        var shares = [[ModelPlace]](repeating: [], count: members.count)
        for topic in topics {
            let takers = members.indices.filter { members[$0].topics.contains(topic) }
            var next = 0
            for (place, taker) in takers.enumerated() {
                let size = count(topic) / takers.count + (place < count(topic) % takers.count ? 1 : 0)
                for partition in next..<next + size {
                    shares[taker].append(ModelPlace(topic: topic, partition: Int32(partition)))
                }
                next += size
            }
        }
        return shares
    }

    private func dealt(_ all: [ModelPlace], to members: [Member]) -> [[ModelPlace]] {
        var shares = [[ModelPlace]](repeating: [], count: members.count)
        var turn = 0
        for place in all {
            for _ in members.indices {
                let member = turn % members.count
                turn += 1
                if members[member].topics.contains(place.topic) {
                    shares[member].append(place)
                    break
                }
            }
        }
        return shares
    }

    /// Balanced, and as much as possible where it was.
    private func sticky(_ all: [ModelPlace], _ members: [Member]) -> [[ModelPlace]] {
        var shares = [[ModelPlace]](repeating: [], count: members.count)
        var left = Set(all)
        let least = members.isEmpty ? 0 : all.count / members.count
        var more = members.isEmpty ? 0 : all.count % members.count
        for (index, member) in members.enumerated() {
            for place in member.owned.sorted() where left.contains(place) && member.topics.contains(place.topic) {
                if shares[index].count == least {
                    if more == 0 { break }
                    more -= 1
                }
                if shares[index].count > least { break }
                shares[index].append(place)
                left.remove(place)
            }
        }
        for place in left.sorted() {
            let takers = members.indices.filter { members[$0].topics.contains(place.topic) }
            if let taker = takers.min(by: { shares[$0].count < shares[$1].count }) { shares[taker].append(place) }
        }
        return shares.map { $0.sorted() }
    }

    /// What another member still holds is given only after it was given back.
    private func withoutMoving(_ shares: [[ModelPlace]], _ members: [Member]) -> [[ModelPlace]] {
        shares.enumerated().map { index, share in
            share.filter { place in
                members.indices.allSatisfy { $0 == index || !members[$0].owned.contains(place) }
            }
        }
    }
}
