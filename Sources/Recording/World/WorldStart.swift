// SPDX-License-Identifier: Apache-2.0
/// The records before a world's first message: every user binds the devices, and some set DND. User by user.
struct WorldStart {
    enum Step {
        case bind(user: Int, isPad: Bool, atMs: Int64)
        case settings(user: Int, atMs: Int64)
    }

    /// Users who bind per second.
    private static let pace = 10_000

    private let settings: WorldSettings
    private let beginMs: Int64
    private var user = 0
    private var part = 0

    init(_ settings: WorldSettings) {
        self.settings = settings
        beginMs = settings.startMs - Int64(settings.users * 1000 / Self.pace) - 1000
    }

    mutating func next(_ people: WorldPeople) -> Step? {
        while user < settings.users {
            let (user, part) = (user, part)
            let atMs = beginMs + Int64(user * 1000 / Self.pace)
            self.part += 1
            switch part {
            case 0: if people.hasTokens(user) { return .bind(user: user, isPad: false, atMs: atMs) }
            case 1:
                if people.hasTokens(user), people.hasPad(user) { return .bind(user: user, isPad: true, atMs: atMs) }
            default:
                self.user += 1
                self.part = 0
                if people.hasDND(user) || people.hidesDetail(user) { return .settings(user: user, atMs: atMs) }
            }
        }
        return nil
    }
}
